"""Golden training steps of a tiny dual encoder for model/clip_test.go.

An independent PyTorch model of clip-mtob's towers and heads (section 3.1) with
nn.TransformerEncoderLayer for the layers of both, nn.Conv2d's patches and heads written
out: several class tokens with one shared projection, one token cut into several unit
vectors, one unit vector, and a Euclidean space compared by distance. It knows nothing of
the Go code but the names of parameters and inputs.

Run from the repository root:  python tools/goldens/clip.py
Writes model/testdata/clip_{multi,oblique,sphere,euclid}.safetensors.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.func import functional_call

B, L, SIZE, PATCH, VOCAB, C = 5, 6, 16, 8, 40, 8
WI, WT, HEADS, DEPTH, LAYERS, POSITIONS = 16, 24, 2, 2, 2, 10
P = (SIZE // PATCH) ** 2
TAU = 0.3


def shapes(classes, channels):
    s = {}

    def lin(name, out, inp):
        s[name + "/weight"], s[name + "/bias"] = (out, inp), (out,)

    def norm(name, d):
        s[name + "/weight"], s[name + "/bias"] = (d,), (d,)

    s["image/patch_embed/weight"] = (WI, 3 * PATCH * PATCH)
    s["image/cls_token"] = (classes, WI) if classes > 1 else (WI,)
    s["image/pos_embed"] = (classes + P, WI)
    norm("image/norm_pre", WI)
    for i in range(DEPTH):
        p = f"image/blocks/{i:02d}"
        norm(p + "/norm1", WI)
        lin(p + "/attn/qkv", 3 * WI, WI)
        lin(p + "/attn/proj", WI, WI)
        norm(p + "/norm2", WI)
        lin(p + "/mlp/fc1", 4 * WI, WI)
        lin(p + "/mlp/fc2", WI, 4 * WI)
    norm("image/norm", WI)
    s["text/embeddings/word/weight"] = (VOCAB, WT)
    s["text/embeddings/position/weight"] = (POSITIONS, WT)
    norm("text/embeddings/norm", WT)
    for i in range(LAYERS):
        p = f"text/layers/{i:02d}"
        lin(p + "/attention/qkv", 3 * WT, WT)
        lin(p + "/attention/output", WT, WT)
        norm(p + "/attention/norm", WT)
        lin(p + "/ffn/intermediate", 4 * WT, WT)
        lin(p + "/ffn/output", WT, 4 * WT)
        norm(p + "/ffn/norm", WT)
    norm("text/norm", WT)
    s["image_proj/weight"], s["text_proj/weight"] = (channels, WI), (channels, WT)
    s["logit_scale"] = ()
    return s


def random_params(gen, classes, channels):
    p = {}
    for name, shape in sorted(shapes(classes, channels).items()):
        x = 0.2 * torch.randn(shape, generator=gen)
        if "norm" in name.split("/")[-2:][0] and name.endswith("weight"):
            x = x + 1
        p[name] = x
    p["logit_scale"] = torch.tensor(math.log(1 / TAU))
    return {k: v.requires_grad_() for k, v in p.items()}


def encoder_layer(p, prefix, names, x, width, first, padding=None):
    """One nn.TransformerEncoderLayer with the parameters of prefix."""
    layer = nn.TransformerEncoderLayer(width, HEADS, 4 * width, 0.0, "gelu", batch_first=True, norm_first=first)
    mine = dict(zip(["self_attn.in_proj_", "self_attn.out_proj.", "norm1.", "linear1.", "linear2.", "norm2."], names))
    weights = {}
    for theirs, name in mine.items():
        for part in ("weight", "bias"):
            weights[theirs + part] = p[f"{prefix}/{name}/{part}"]
    return functional_call(layer, weights, (x,), {"src_key_padding_mask": padding})


def norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + "/weight"], p[name + "/bias"])


def image_tower(p, x, classes):
    x = F.conv2d(x, p["image/patch_embed/weight"].view(WI, 3, PATCH, PATCH), stride=PATCH)
    x = x.flatten(2).transpose(1, 2)
    token = p["image/cls_token"].view(1, classes, WI).expand(x.shape[0], -1, -1)
    x = torch.cat([token, x], 1) + p["image/pos_embed"]
    x = norm(p, "image/norm_pre", x)
    for i in range(DEPTH):
        x = encoder_layer(p, f"image/blocks/{i:02d}", ["attn/qkv", "attn/proj", "norm1", "mlp/fc1", "mlp/fc2", "norm2"], x, WI, True)
    return norm(p, "image/norm", x[:, :classes])


def text_tower(p, ids, padding, classes):
    ids = torch.cat([ids[:, :1].expand(-1, classes - 1), ids], 1)
    padding = torch.cat([padding[:, :1].expand(-1, classes - 1), padding], 1)
    x = p["text/embeddings/word/weight"][ids] + p["text/embeddings/position/weight"][: ids.shape[1]]
    x = norm(p, "text/embeddings/norm", x)
    names = ["attention/qkv", "attention/output", "attention/norm", "ffn/intermediate", "ffn/output", "ffn/norm"]
    for i in range(LAYERS):
        x = encoder_layer(p, f"text/layers/{i:02d}", names, x, WT, False, padding)
    return norm(p, "text/norm", x)[:, :classes]


def head(mode, spheres, x, weight):
    """Features (B, spheres, C/spheres) of class tokens x (B, classes, D)."""
    x = x @ weight.T
    x = x.reshape(x.shape[0], spheres, C // spheres)
    return x if mode == "euclid" else F.normalize(x, dim=-1)


def main(mode, spheres, seed, by_id):
    classes = spheres if mode == "multi" else 1
    gen = torch.Generator().manual_seed(seed)
    p = random_params(gen, classes, C // classes)
    images = torch.randn(B, 3, SIZE, SIZE, generator=gen)
    lengths = torch.tensor([6, 4, 3, 5, 2])
    padding = torch.arange(L)[None] >= lengths[:, None]
    tokens = torch.randint(5, VOCAB, (B, L), generator=gen).masked_fill(padding, 0)
    tokens[:, 0] = 2
    ids = torch.tensor([7, 3, 7, 9, 3])

    x = head(mode, spheres, image_tower(p, images, classes), p["image_proj/weight"])
    y = head(mode, spheres, text_tower(p, tokens, padding, classes), p["text_proj/weight"])
    if mode == "euclid":
        score = -(x[:, None] - y[None]).square().sum((-1, -2)).sqrt()
    else:
        score = torch.einsum("atd,btd->ab", x, y)
    logits = score * p["logit_scale"].exp()
    hard = torch.eye(B)
    if by_id:
        hard = (ids[:, None] == ids[None]).float()
        hard = hard / hard.sum(1, keepdim=True)
    loss = (F.cross_entropy(logits, hard) + F.cross_entropy(logits.T, hard)) / 2
    loss.backward()

    i32 = lambda x: x.to(torch.int32)
    out = {
        "input/images": images, "input/tokens": i32(tokens), "input/lengths": i32(lengths), "input/ids": i32(ids),
        "expect/loss": loss, "expect/image": x.flatten(1), "expect/text": y.flatten(1),
    }
    for k, v in p.items():
        out["param/" + k], out["grad/" + k] = v, v.grad
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, f"model/testdata/clip_{mode}.safetensors")
    print(mode, loss.item())


if __name__ == "__main__":
    main("multi", 4, 21, False)
    main("oblique", 2, 22, True)
    main("sphere", 1, 23, False)
    main("euclid", 1, 24, False)
