"""Golden towers for model/towers_golden_test.go.

Towers of transformers and timm with random weights: what stands for an image or a text, all
tokens, and the gradient of every parameter for one loss, a sum of GELUs of a projection of the
former. Parameters have the names and shapes that the Go code gives them; where several of
theirs make one of ours, gradients are put together alike.

Run from the root of the repository with a Python that has torch, transformers, timm and
safetensors; the last run was with torch 2.15, transformers 5.23 and timm 1.0.31:

    python tools/goldens/towers.py

Writes model/testdata/tower_*.safetensors.
"""

import timm
import torch
import torch.nn.functional as F
import transformers as hf
from safetensors.torch import save_file

N, SIZE, PATCH, D, H, MLP, DEPTH, VOCAB, L, READ = 3, 8, 4, 8, 2, 20, 2, 24, 6, 4
LENGTHS = torch.tensor([6, 2, 4])
SIZES = dict(hidden_size=D, num_hidden_layers=DEPTH, num_attention_heads=H)


class Names:
    """Collects what becomes of a model's parameters: ours = of(theirs), for values and gradients."""

    def __init__(self, model):
        self.theirs, self.ours, self.used = dict(model.named_parameters()), {}, set()

    def add(self, ours, *theirs, of=torch.cat, grads=None):
        self.used.update(theirs)
        self.ours[ours] = ([self.theirs[t] for t in theirs], of, grads or of)

    def layer(self, ours, *theirs):
        """A linear layer or a norm, or several that become one."""
        for part in ("weight", "bias"):
            if all(f"{t}.{part}" in self.theirs for t in theirs):
                self.add(f"{ours}/{part}", *(f"{t}.{part}" for t in theirs))

    def patches(self, ours, theirs):
        self.add(f"{ours}/weight", f"{theirs}.weight", of=lambda x: x[0].flatten(1))
        if f"{theirs}.bias" in self.theirs:
            self.add(f"{ours}/bias", f"{theirs}.bias")

    def rows(self, ours, theirs, width=D):
        self.add(ours, theirs, of=lambda x: x[0].reshape(-1, width))


def fill(model, seed):
    """Values with which every part shows."""
    gen = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        x = 0.3 * torch.randn(p.shape, generator=gen)
        if "norm" in name.lower() and name.endswith("weight"):
            x += 1
        p.data = x.double()
    return model.double().eval(), gen


def write(name, names, gen, inputs, run, unused=()):
    read = (0.5 * torch.randn(READ, D, generator=gen)).double()
    classes, tokens = run()
    loss = F.gelu(classes @ read.T).sum()
    loss.backward()
    left = set(names.theirs) - names.used
    assert all(any(u in n for u in unused) for n in left), left
    out = {f"input/{k}": v for k, v in inputs.items()}
    out |= {"read": read, "expect/classes": classes, "expect/loss": loss, "expect/tokens": tokens.reshape(-1, D)}
    for ours, (theirs, of, grads) in names.ours.items():
        out[f"param/{ours}"] = of([t.data for t in theirs])
        out[f"grad/{ours}"] = grads([torch.zeros_like(t) if t.grad is None else t.grad for t in theirs])
    tensor = lambda v: (v if v.dtype == torch.int32 else v.float()).detach().clone().contiguous()
    save_file({k: tensor(v) for k, v in out.items()}, f"model/testdata/tower_{name}.safetensors")
    print(name, loss.item())


def images(gen):
    return torch.randn(N, 3, SIZE, SIZE, generator=gen)


def words(gen, pad, first, last=None):
    ids = torch.randint(5, VOCAB - 2, (N, L), generator=gen)
    ids[:, 0] = first
    if last is not None:
        ids[torch.arange(N), LENGTHS - 1] = last
    return ids.masked_fill(torch.arange(L)[None] >= LENGTHS[:, None], pad)


def text_inputs(ids):
    return {"tokens": ids.to(torch.int32), "lengths": LENGTHS.to(torch.int32)}


def clip_image():
    cfg = hf.CLIPVisionConfig(**SIZES, intermediate_size=MLP, image_size=SIZE, patch_size=PATCH)
    model, gen = fill(hf.CLIPVisionModel(cfg), 1)
    n = Names(model)
    v = "vision_model." if any(k.startswith("vision_model.") for k in n.theirs) else ""
    n.patches("image/patch_embed", v + "embeddings.patch_embedding")
    n.add("image/cls_token", v + "embeddings.class_embedding")
    n.layer("image/norm_pre", v + "pre_layrnorm")
    n.layer("image/norm", v + "post_layernorm")
    n.add("image/pos_embed", v + "embeddings.position_embedding.weight")
    clip_layers(n, v + "encoder.layers", "image/blocks", "attn/qkv", "attn/proj", "mlp/fc1", "mlp/fc2")
    x = images(gen)
    post = dict(model.named_modules())[v + "post_layernorm"]

    def run():
        y = model(pixel_values=x.double())
        return y.pooler_output, post(y.last_hidden_state)

    write("clip_image", n, gen, {"images": x}, run)


def clip_layers(n, theirs, ours, qkv, proj, fc1, fc2):
    for i in range(DEPTH):
        t, o = f"{theirs}.{i}.", f"{ours}/{i:02d}/"
        n.layer(o + "norm1", t + "layer_norm1")
        n.layer(o + qkv, *(t + f"self_attn.{p}_proj" for p in "qkv"))
        n.layer(o + proj, t + "self_attn.out_proj")
        n.layer(o + "norm2", t + "layer_norm2")
        n.layer(o + fc1, t + "mlp.fc1")
        n.layer(o + fc2, t + "mlp.fc2")


def pre_norm_text(name, model, gen, ids, last, unused=()):
    n = Names(model)
    v = "text_model." if any(k.startswith("text_model.") for k in n.theirs) else ""
    n.add("text/embeddings/word/weight", v + "embeddings.token_embedding.weight")
    n.add("text/embeddings/position/weight", v + "embeddings.position_embedding.weight")
    n.layer("text/norm", v + "final_layer_norm")
    clip_layers(n, v + "encoder.layers", "text/layers", "attention/qkv", "attention/output", "ffn/intermediate", "ffn/output")

    def run():
        y = model(input_ids=ids).last_hidden_state
        return y[torch.arange(N), last], y

    write(name, n, gen, text_inputs(ids), run, unused)


def clip_text():
    cfg = hf.CLIPTextConfig(**SIZES, intermediate_size=MLP, vocab_size=VOCAB, max_position_embeddings=L + 2, bos_token_id=VOCAB - 2, eos_token_id=VOCAB - 1, pad_token_id=0)
    model, gen = fill(hf.CLIPTextModel(cfg), 2)
    ids = words(gen, 0, VOCAB - 2, VOCAB - 1)
    pooled = model(input_ids=ids)
    assert torch.equal(pooled.pooler_output, pooled.last_hidden_state[torch.arange(N), LENGTHS - 1])
    pre_norm_text("clip_text", model, gen, ids, LENGTHS - 1)


def siglip_text():
    cfg = hf.SiglipTextConfig(**SIZES, intermediate_size=MLP, vocab_size=VOCAB, max_position_embeddings=L, projection_size=D)
    model, gen = fill(hf.SiglipTextModel(cfg), 3)
    pre_norm_text("siglip_text", model, gen, words(gen, 1, 7), torch.full((N,), L - 1), unused=("head",))


def siglip_image():
    cfg = hf.SiglipVisionConfig(**SIZES, intermediate_size=MLP, image_size=SIZE, patch_size=PATCH)
    model, gen = fill(hf.SiglipVisionModel(cfg), 4)
    n = Names(model)
    v = "vision_model." if any(k.startswith("vision_model.") for k in n.theirs) else ""
    n.patches("image/patch_embed", v + "embeddings.patch_embedding")
    n.add("image/pos_embed", v + "embeddings.position_embedding.weight")
    n.layer("image/norm", v + "post_layernorm")
    clip_layers(n, v + "encoder.layers", "image/blocks", "attn/qkv", "attn/proj", "mlp/fc1", "mlp/fc2")
    n.rows("image/pool/probe", v + "head.probe")
    n.add("image/pool/qkv/weight", v + "head.attention.in_proj_weight")
    n.add("image/pool/qkv/bias", v + "head.attention.in_proj_bias")
    n.layer("image/pool/proj", v + "head.attention.out_proj")
    n.layer("image/pool/norm", v + "head.layernorm")
    n.layer("image/pool/mlp/fc1", v + "head.mlp.fc1")
    n.layer("image/pool/mlp/fc2", v + "head.mlp.fc2")
    x = images(gen)

    def run():
        y = model(pixel_values=x.double())
        return y.pooler_output, y.last_hidden_state

    write("siglip_image", n, gen, {"images": x}, run)


def dinov2(name, registers, swiglu, seed):
    sizes = dict(**SIZES, mlp_ratio=3, image_size=SIZE, patch_size=PATCH, use_swiglu_ffn=swiglu)
    if registers:
        model = hf.Dinov2WithRegistersModel(hf.Dinov2WithRegistersConfig(**sizes, num_register_tokens=registers))
    else:
        model = hf.Dinov2Model(hf.Dinov2Config(**sizes))
    model, gen = fill(model, seed)
    n = Names(model)
    n.patches("image/patch_embed", "embeddings.patch_embeddings.projection")
    n.add("image/cls_token", "embeddings.cls_token", of=lambda x: x[0].flatten())
    n.rows("image/pos_embed", "embeddings.position_embeddings")
    if registers:
        n.rows("image/registers", "embeddings.register_tokens")
    n.layer("image/norm", "layernorm")
    layers = "encoder.layer" if "encoder.layer.0.norm1.weight" in n.theirs else "layers"
    for i in range(DEPTH):
        t, o = f"{layers}.{i}.", f"image/blocks/{i:02d}/"
        n.layer(o + "norm1", t + "norm1")
        q = [k for k in ("attention.attention.query", "attention.query", "attention.q_proj") if t + k + ".weight" in n.theirs][0]
        n.layer(o + "attn/qkv", *(t + q.replace("query", p).replace("q_proj", p[0] + "_proj") for p in ("query", "key", "value")))
        out = [k for k in ("attention.output.dense", "attention.o_proj") if t + k + ".weight" in n.theirs][0]
        n.layer(o + "attn/proj", t + out)
        n.add(o + "scale1", t + "layer_scale1.lambda1")
        n.layer(o + "norm2", t + "norm2")
        if swiglu:
            n.layer(o + "mlp/fc1", t + "mlp.gate_proj", t + "mlp.up_proj")
            n.layer(o + "mlp/fc2", t + "mlp.down_proj")
        else:
            n.layer(o + "mlp/fc1", t + "mlp.fc1")
            n.layer(o + "mlp/fc2", t + "mlp.fc2")
        n.add(o + "scale2", t + "layer_scale2.lambda1")
    x = images(gen)

    def run():
        y = model(pixel_values=x.double())
        tokens = y.last_hidden_state
        return y.pooler_output, torch.cat([tokens[:, :1], tokens[:, 1 + registers :]], 1)

    write(name, n, gen, {"images": x}, run, unused=("mask_token",))


def timm_image(name, seed, **options):
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=SIZE, patch_size=PATCH, embed_dim=D, depth=DEPTH, num_heads=H, mlp_ratio=MLP / D, num_classes=0, **options)
    model, gen = fill(model, seed)
    n = Names(model)
    n.patches("image/patch_embed", "patch_embed.proj")
    if "cls_token" in n.theirs:
        n.add("image/cls_token", "cls_token", of=lambda x: x[0].flatten())
    r = options.get("reg_tokens", 0)
    n.add("image/pos_embed", "pos_embed", of=lambda x: torch.cat([x[0][0, :1], x[0][0, 1 + r :]]))
    if r:  # which have positions in timm
        n.add("image/registers", "reg_token", "pos_embed", of=lambda x: x[0][0] + x[1][0, 1 : 1 + r], grads=lambda x: x[0][0])
    n.layer("image/norm", "fc_norm" if "fc_norm.weight" in n.theirs else "norm")
    for i in range(DEPTH):
        t, o = f"blocks.{i}.", f"image/blocks/{i:02d}/"
        for ours, theirs in (("norm1", "norm1"), ("attn/qkv", "attn.qkv"), ("attn/proj", "attn.proj"), ("norm2", "norm2"), ("mlp/fc1", "mlp.fc1"), ("mlp/fc2", "mlp.fc2")):
            n.layer(o + ours, t + theirs)
    x = images(gen)
    final = model.fc_norm if "fc_norm.weight" in n.theirs else torch.nn.Identity()

    def run():
        tokens = final(model.forward_features(x.double()))
        classes = tokens.shape[1] - model.patch_embed.num_patches
        kept = [tokens[:, :1]] if model.cls_token is not None else []
        return model(x.double()), torch.cat([*kept, tokens[:, classes:]], 1)

    write(name, n, gen, {"images": x}, run)


def bert_layers(n, layers, attention):
    q, k, v, out, norm = attention
    for i in range(DEPTH):
        t, o = f"{layers}.{i}.", f"text/layers/{i:02d}/"
        n.layer(o + "attention/qkv", *(t + p for p in (q, k, v)))
        n.layer(o + "attention/output", t + out)
        n.layer(o + "attention/norm", t + norm)
        n.layer(o + "ffn/intermediate", t + "intermediate.dense")
        n.layer(o + "ffn/output", t + "output.dense")
        n.layer(o + "ffn/norm", t + "output.LayerNorm")


def post_norm_text(name, n, model, gen, ids, types, mean=False):
    mask = torch.arange(L)[None] < LENGTHS[:, None]
    n.add("text/embeddings/word/weight", "embeddings.word_embeddings.weight")
    position = "embeddings.position_embeddings.weight"
    if types:  # type 0 of every position is part of it
        n.add("text/embeddings/position/weight", position, "embeddings.token_type_embeddings.weight",
              of=lambda x: x[0][2:] + x[1][0], grads=lambda x: x[0][2:])
    else:
        n.add("text/embeddings/position/weight", position, of=lambda x: x[0][2:])
    n.layer("text/embeddings/norm", "embeddings.LayerNorm")

    def run():
        # Positions stay 0, 1, ... behind the text, where they differ from those of the source and nobody looks.
        y = model(input_ids=ids, attention_mask=mask.long(), position_ids=torch.arange(2, L + 2).expand(N, L)).last_hidden_state
        if mean:
            return (y * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), y
        return y[:, 0], y

    write(name, n, gen, text_inputs(ids), run, unused=("pooler",))


def roberta():
    cfg = hf.RobertaConfig(**SIZES, intermediate_size=MLP, vocab_size=VOCAB, max_position_embeddings=L + 2, type_vocab_size=1, layer_norm_eps=1e-5)
    model, gen = fill(hf.RobertaModel(cfg), 9)
    n = Names(model)
    bert_layers(n, "encoder.layer", ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "attention.output.LayerNorm"))
    post_norm_text("roberta", n, model, gen, words(gen, 1, 0, 2), True)


def mpnet():
    cfg = hf.MPNetConfig(**SIZES, intermediate_size=MLP, vocab_size=VOCAB, max_position_embeddings=L + 2, layer_norm_eps=1e-5)
    for name, mean, seed in (("mpnet", False, 10), ("mpnet_mean", True, 11)):
        model, gen = fill(hf.MPNetModel(cfg), seed)
        n = Names(model)
        bert_layers(n, "encoder.layer", ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm"))
        n.add("text/relative/weight", "encoder.relative_attention_bias.weight")
        post_norm_text(name, n, model, gen, words(gen, 1, 0, 2), False, mean)


class Recurrent(torch.nn.Module):
    """The text encoder of VSE++ and SCAN: embeddings of words and packed gated recurrent units."""

    def __init__(self, both, join):
        super().__init__()
        h = D // 2 if join == "concat" else D
        self.words = torch.nn.Embedding(VOCAB, 5)
        self.gru = torch.nn.GRU(5, h, DEPTH, batch_first=True, bidirectional=both)
        self.join, self.both, self.h = join, both, h

    def forward(self, ids):
        packed = torch.nn.utils.rnn.pack_padded_sequence(self.words(ids), LENGTHS, batch_first=True, enforce_sorted=False)
        y, last = self.gru(packed)
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=L)
        last = last[-2:].transpose(0, 1).reshape(N, -1) if self.both else last[-1]
        if self.join == "mean":
            y, last = ((x[..., : self.h] + x[..., self.h :]) / 2 for x in (y, last))
        return y, last


def gru(name, join, seed, mean=False):
    model, gen = fill(Recurrent(join != "forward", join), seed)
    n = Names(model)
    n.add("text/embeddings/word/weight", "words.weight")
    for i in range(DEPTH):
        for direction, suffix in (("forward", ""), ("reverse", "_reverse"))[: 1 + model.both]:
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                n.add(f"text/layers/{i:02d}/{direction}/{part}", f"gru.{part}_l{i}{suffix}")
    ids = words(gen, 0, 3)

    def run():
        y, last = model(ids)
        return (y.sum(1) / LENGTHS[:, None] if mean else last), y

    write(name, n, gen, text_inputs(ids), run)


if __name__ == "__main__":
    clip_image()
    clip_text()
    siglip_text()
    siglip_image()
    dinov2("dinov2", 0, False, 5)
    dinov2("dinov2_registers", 3, False, 6)
    dinov2("dinov2_swiglu", 0, True, 7)
    timm_image("vit_mean", 8, global_pool="avg")
    timm_image("vit_registers", 12, reg_tokens=2, no_embed_class=False)
    timm_image("siglip_mean", 13, global_pool="avg", class_token=False, fc_norm=False, act_layer="gelu_tanh")
    roberta()
    mpnet()
    gru("gru", "mean", 14)
    gru("gru_concat", "concat", 15)
    gru("gru_forward", "forward", 16, mean=True)
