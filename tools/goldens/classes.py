"""Golden towers with several class tokens for encoders/classes_golden_test.go.

An independent PyTorch vision transformer and text tower of ALBEF's kind with three class
tokens, the further two of which pass the last block or all blocks: attention and masks
written out, the first class token and the rest kept in separate tensors until the further
ones join. The loss is a sum of GELUs of projected tokens, class tokens, words and class
tokens of texts, and words of texts with one class token. It knows nothing of the Go code
but the names of parameters and inputs.

Run from the repository root:  python tools/goldens/classes.py
Writes encoders/testdata/classes_{last,all}.safetensors.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

N, L, SIZE, PATCH, VOCAB, M, K = 3, 5, 8, 4, 20, 3, 4
WI, HI, WT, HT, DEPTH = 12, 3, 16, 2, 3
P = (SIZE // PATCH) ** 2


def shapes():
    s = {}

    def lin(name, out, inp):
        s[name + "/weight"], s[name + "/bias"] = (out, inp), (out,)

    def norm(name, d):
        s[name + "/weight"], s[name + "/bias"] = (d,), (d,)

    lin("image/patch_embed", WI, 3 * PATCH * PATCH)
    s["image/cls_token"], s["image/pos_embed"] = (M, WI), (M + P, WI)
    norm("image/norm", WI)
    s["text/embeddings/word/weight"], s["text/embeddings/token_type/weight"] = (VOCAB, WT), (2, WT)
    s["text/embeddings/position/weight"] = (L + M - 1, WT)
    norm("text/embeddings/norm", WT)
    for i in range(DEPTH):
        p = f"image/blocks/{i:02d}"
        norm(p + "/norm1", WI)
        lin(p + "/attn/qkv", 3 * WI, WI)
        lin(p + "/attn/proj", WI, WI)
        norm(p + "/norm2", WI)
        lin(p + "/mlp/fc1", 4 * WI, WI)
        lin(p + "/mlp/fc2", WI, 4 * WI)
        p = f"text/layers/{i:02d}"
        lin(p + "/attention/qkv", 3 * WT, WT)
        lin(p + "/attention/output", WT, WT)
        norm(p + "/attention/norm", WT)
        lin(p + "/ffn/intermediate", 4 * WT, WT)
        lin(p + "/ffn/output", WT, 4 * WT)
        norm(p + "/ffn/norm", WT)
    for part, width in [("tokens", WI), ("classes", WI), ("states", WT), ("text_classes", WT), ("text", WT)]:
        s["read/" + part] = (K, width)
    return s


def lin(p, name, x):
    return x @ p[name + "/weight"].T + p[name + "/bias"]


def norm(p, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], p[name + "/weight"], p[name + "/bias"], eps)


def attend(qkv, heads, mask):
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in qkv.chunk(3, -1))
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask[:, None, None, :], -math.inf)
    return (s.softmax(-1) @ v).transpose(1, 2).flatten(2)


def image_tower(p, x, late):
    x = F.conv2d(x, p["image/patch_embed/weight"].view(WI, 3, PATCH, PATCH), p["image/patch_embed/bias"], stride=PATCH)
    pos, tokens = p["image/pos_embed"], p["image/cls_token"]
    patches = x.flatten(2).transpose(1, 2) + pos[M:]
    first = (tokens[:1] + pos[:1]).expand(N, 1, WI)
    more = (tokens[1:] + pos[1:M]).expand(N, M - 1, WI)
    x = torch.cat([first, patches], 1)
    for i in range(DEPTH):
        if i == late:
            x = torch.cat([x, more], 1)
        b = f"image/blocks/{i:02d}"
        x = x + lin(p, b + "/attn/proj", attend(lin(p, b + "/attn/qkv", norm(p, b + "/norm1", x, 1e-6)), HI, None))
        x = x + lin(p, b + "/mlp/fc2", F.gelu(lin(p, b + "/mlp/fc1", norm(p, b + "/norm2", x, 1e-6))))
    x = norm(p, "image/norm", x, 1e-6)
    return x[:, : 1 + P], torch.cat([x[:, :1], x[:, 1 + P :]], 1)


def text_tower(p, ids, lengths, late):
    """Words with the first class token, and all class tokens, which join before a layer."""
    e = "text/embeddings/"
    position = torch.tensor([0] + list(range(M, M + L - 1)))

    def embed(ids, position):
        x = F.embedding(ids, p[e + "word/weight"], padding_idx=0) + p[e + "token_type/weight"][0] + p[e + "position/weight"][position]
        return norm(p, e + "norm", x, 1e-12)

    x, mask = embed(ids, position), torch.arange(L)[None] < lengths[:, None]
    more = embed(ids[:, :1].expand(N, M - 1), torch.arange(1, M))
    for i in range(DEPTH):
        if i == late:
            x, mask = torch.cat([x, more], 1), torch.cat([mask, torch.ones(N, M - 1, dtype=torch.bool)], 1)
        b = f"text/layers/{i:02d}"
        x = norm(p, b + "/attention/norm", x + lin(p, b + "/attention/output", attend(lin(p, b + "/attention/qkv", x), HT, mask)), 1e-12)
        x = norm(p, b + "/ffn/norm", x + lin(p, b + "/ffn/output", F.gelu(lin(p, b + "/ffn/intermediate", x))), 1e-12)
    return x[:, :L], torch.cat([x[:, :1], x[:, L:]], 1)


def main(name, late, seed):
    gen = torch.Generator().manual_seed(seed)
    p = {}
    for key, shape in sorted(shapes().items()):
        p[key] = 0.2 * torch.randn(shape, generator=gen)
        if "norm" in key.split("/")[-2] and key.endswith("weight"):
            p[key] += 1
        p[key].requires_grad_()
    images = torch.randn(N, 3, SIZE, SIZE, generator=gen)
    lengths = torch.tensor([5, 2, 3])
    ids = torch.randint(5, VOCAB, (N, L), generator=gen).masked_fill(torch.arange(L)[None] >= lengths[:, None], 0)
    ids[:, 0] = 2
    parts = {}
    parts["tokens"], parts["classes"] = image_tower(p, images, late)
    parts["states"], parts["text_classes"] = text_tower(p, ids, lengths, late)
    parts["text"], _ = text_tower(p, ids, lengths, DEPTH)
    loss = sum(F.gelu(x @ p["read/" + part].T).sum() for part, x in parts.items())
    loss.backward()
    out = {"input/images": images, "input/ids": ids.to(torch.int32), "input/lengths": lengths.to(torch.int32), "expect/loss": loss}
    for key, x in parts.items():
        out["expect/" + key] = x.flatten(0, 1)
    for key, x in p.items():
        out["param/" + key], out["grad/" + key] = x, x.grad
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, f"encoders/testdata/classes_{name}.safetensors")
    print(name, loss.item())


if __name__ == "__main__":
    main("last", DEPTH - 1, 31)
    main("all", 0, 32)
