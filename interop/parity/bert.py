"""What ALBEF's code expects of the transformers of its time, and the names of its parameters."""
import re

import torch

# Ours, theirs: a parameter of ours in braces is the rows of several of theirs, one after the other.
LAYOUT = [
    (r"image/cls_token", "visual_encoder.cls_token"),
    (r"image/pos_embed", "visual_encoder.pos_embed"),
    (r"image/patch_embed/(\w+)", r"visual_encoder.patch_embed.proj.\1"),
    (r"image/blocks/0*(\d+)/(norm\d)/(\w+)", r"visual_encoder.blocks.\1.\2.\3"),
    (r"image/blocks/0*(\d+)/(attn|mlp)/(\w+)/(\w+)", r"visual_encoder.blocks.\1.\2.\3.\4"),
    (r"image/norm/(\w+)", r"visual_encoder.norm.\1"),
    (r"text/embeddings/(word|position|token_type)/weight", r"text_encoder.bert.embeddings.\1_embeddings.weight"),
    (r"text/embeddings/norm/(\w+)", r"text_encoder.bert.embeddings.LayerNorm.\1"),
    (r"text/layers/0*(\d+)/attention/qkv/(\w+)", r"text_encoder.bert.encoder.layer.\1.attention.self.{query,key,value}.\2"),
    (r"text/layers/0*(\d+)/crossattention/query/(\w+)", r"text_encoder.bert.encoder.layer.\1.crossattention.self.query.\2"),
    (r"text/layers/0*(\d+)/crossattention/kv/(\w+)", r"text_encoder.bert.encoder.layer.\1.crossattention.self.{key,value}.\2"),
    (r"text/layers/0*(\d+)/(\w*attention)/output/(\w+)", r"text_encoder.bert.encoder.layer.\1.\2.output.dense.\3"),
    (r"text/layers/0*(\d+)/(\w*attention)/norm/(\w+)", r"text_encoder.bert.encoder.layer.\1.\2.output.LayerNorm.\3"),
    (r"text/layers/0*(\d+)/ffn/(intermediate|output)/(\w+)", r"text_encoder.bert.encoder.layer.\1.\2.dense.\3"),
    (r"text/layers/0*(\d+)/ffn/norm/(\w+)", r"text_encoder.bert.encoder.layer.\1.output.LayerNorm.\2"),
    (r"text/mlm/dense/(\w+)", r"text_encoder.cls.predictions.transform.dense.\1"),
    (r"text/mlm/norm/(\w+)", r"text_encoder.cls.predictions.transform.LayerNorm.\1"),
    (r"text/mlm/bias", "text_encoder.cls.predictions.bias"),
    (r"sentence_head/(\w+)", r"mlp.dense.\1"),
    (r"image_proj/(\w+)", r"vision_proj.\1"),
    (r"text_proj/(\w+)", r"text_proj.\1"),
    (r"itm_head/(\w+)", r"itm_head.\1"),
    (r"temperature", "temp"),
]


def table(ours, shapes, theirs=lambda name: name):
    """The names of the published code for all parameters of ours: those of shapes, the parameters of a module."""
    names = {}
    for name in ours.part("param/"):
        for pattern, to in LAYOUT:
            match = re.fullmatch(pattern, name)
            if not match:
                continue
            to = match.expand(to)
            before, _, rest = to.partition("{")
            parts, _, after = rest.partition("}")
            parts = [before + x + after for x in parts.split(",")] if rest else [to]
            for i, part in enumerate(map(theirs, parts)):
                if part not in shapes:
                    raise KeyError(f"{part} of {name} is no parameter of the published module")
                # axes of length 1 differ, the order of the numbers never does
                names[part] = name, lambda x, i=i, n=len(parts), shape=shapes[part]: x.reshape(n, *shape)[i]
            break
        else:
            raise KeyError(f"{name} has no published name: give it a line in LAYOUT")
    return names


def prepare():
    """Gives transformers of today the names and habits that the published encoder reads."""
    import transformers
    from transformers import file_utils, modeling_utils

    def chunked(forward, size, axis, *inputs):
        return forward(*inputs)

    for name in ("apply_chunking_to_forward", "find_pruneable_heads_and_indices", "prune_linear_layer"):
        setattr(modeling_utils, name, chunked)
    for name in ("add_code_sample_docstrings", "add_start_docstrings", "add_start_docstrings_to_model_forward", "replace_return_docstrings"):
        setattr(file_utils, name, lambda *a, **k: lambda f: f)
    transformers.logging.set_verbosity_error()
    model = modeling_utils.PreTrainedModel
    model.init_weights = lambda self: None
    model.get_head_mask = lambda self, mask, layers, *a: [None] * layers
    model.invert_attention_mask = lambda self, mask: (1.0 - mask[:, None, None, :].float()) * -1e4


def config(ours, fusion):
    """The configuration of the text encoder; fusion says whether its last layers read images."""
    from transformers.models.bert.configuration_bert import BertConfig

    vocab, width = ours["param/text/embeddings/word/weight"].shape
    layers = {re.match(r"text/layers/(\d+)/(crossattention/query)?", k).groups() for k in ours.part("param/") if k.startswith("text/layers/")}
    depth, fused = len({i for i, _ in layers}), len({i for i, x in layers if x})
    c = BertConfig(
        vocab_size=vocab, hidden_size=width, num_hidden_layers=depth, num_attention_heads=int(ours.settings["text_heads"]), intermediate_size=ours["param/text/layers/00/ffn/intermediate/weight"].shape[0],
        max_position_embeddings=ours["param/text/embeddings/position/weight"].shape[0], hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-12, pad_token_id=0)
    for name, value in {
        "fusion_layer": depth - fused if fusion else depth, "encoder_width": ours["param/image/pos_embed"].shape[-1] if fusion else width, "position_embedding_type": "absolute",
        "gradient_checkpointing": False, "add_cross_attention": False, "is_decoder": False, "use_cache": False, "chunk_size_feed_forward": 0,
    }.items():
        setattr(c, name, value)
    return c


def pixels(ours):
    """The sizes of the image tower: those of the published constructor."""
    _, patches, width = ours["param/image/pos_embed"].unsqueeze(0).shape[-3:] if ours["param/image/pos_embed"].dim() == 2 else ours["param/image/pos_embed"].shape
    kernel = ours["param/image/patch_embed/weight"]
    patch = int((kernel.numel() // width // 3) ** 0.5)
    side = int((patches - 1) ** 0.5)
    blocks = {k.split("/")[2] for k in ours.part("param/") if k.startswith("image/blocks/")}
    return {"img_size": side * patch, "patch_size": patch, "embed_dim": width, "depth": len(blocks), "num_heads": int(ours.settings["image_heads"])}
