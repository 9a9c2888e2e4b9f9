"""clip-mtob (minogame/clip-mtob): scores of the model with 16 class tokens. Its repository has no training: the loss is the
symmetric contrast of its paper over these scores."""
import torch
from torch.nn import functional as F

from hosts import linear
from ours import Names, Result

FOLDER, PYTHON2, DOUBLE = "clip-mtob", False, False
CASES = {"Multi, 16 class tokens": ("clip", [])}
LAYERS = {"self_attn.in_proj_": "attention/qkv/", "self_attn.out_proj.": "attention/output/", "norm1.": "attention/norm/", "linear1.": "ffn/intermediate/", "linear2.": "ffn/output/", "norm2.": "ffn/norm/"}
BLOCKS = {"ln_1.": "norm1/", "attn.in_proj_": "attn/qkv/", "attn.out_proj.": "attn/proj/", "ln_2.": "norm2/", "mlp.c_fc.": "mlp/fc1/", "mlp.c_proj.": "mlp/fc2/"}


def both(theirs, ours):
    return {theirs + k: ours + k for k in ("weight", "bias")}


def table(patch, places, depth, layers):
    t = {
        "visual.class_embedding": "image/cls_token", "visual.positional_embedding": "image/pos_embed", "visual.proj": ("image_proj/weight", lambda x: x.T),
        "visual.conv1.weight": ("image/patch_embed/weight", lambda x: x.reshape(-1, 3, patch, patch)), "token_embedding.weight": "text/embeddings/word/weight",
        "positional_embedding": ("text/embeddings/position/weight", lambda x: x[:places]), "text_projection": ("text_proj/weight", lambda x: x.T), "logit_scale": "logit_scale",
    }
    t |= linear("visual.ln_pre", "image/norm_pre") | linear("visual.ln_post", "image/norm") | linear("ln_embedding", "text/embeddings/norm") | linear("ln_final", "text/norm")
    for i in range(depth):
        for theirs, name in BLOCKS.items():
            t |= both(f"visual.transformer.resblocks.{i}.{theirs}", f"image/blocks/{i:02d}/{name}")
    for i in range(layers):
        for theirs, name in LAYERS.items():
            t |= both(f"transformer.encoder.layers.{i}.{theirs}", f"text/layers/{i:02d}/{name}")
    return t


def run(ours, case):
    import modeling_clip_helper_mtob as published

    classes, width = ours["param/image/cls_token"].shape
    channels, patch = len(ours["param/image_proj/weight"]), int((ours["param/image/patch_embed/weight"].shape[1] // 3) ** 0.5)
    side = int((len(ours["param/image/pos_embed"]) - classes) ** 0.5) * patch
    vocab, text = ours["param/text/embeddings/word/weight"].shape
    depth, layers = (len({k.split("/")[2] for k in ours.part("param/") if k.startswith(x)}) for x in ("image/blocks/", "text/layers/"))
    length = ours["input/tokens"].shape[1]
    m = published.CLIP(
        embed_dim=0, image_resolution=side, vision_layers=1, vision_width=64, vision_patch_size=patch, output_dim=channels, n_class_tokens=classes, context_length=length, vocab_size=vocab,
        transformer_width=text, transformer_heads=int(ours.settings["text_heads"]), transformer_layers=layers)
    m.visual = published.VisionTransformer(side, patch, width, depth, int(ours.settings["image_heads"]), channels, classes)  # 64 channels a head there
    names = Names(ours, table(patch, length + classes - 1, depth, layers))
    names.give(m)

    def scores(prefix):
        tokens = ours[prefix + "tokens"]
        return m(ours[prefix + "images"], (tokens, (torch.arange(length) < ours[prefix + "lengths"][:, None]).long()))[0]

    logits = scores("input/") * m.logit_scale.exp()
    own = torch.arange(len(logits))
    loss = (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2
    loss.backward()
    with torch.no_grad():
        found = scores("eval/")
    return Result(found, {"loss": loss.item()}, names.gradients(m))
