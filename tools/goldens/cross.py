"""Values for ops/interaction/cross_test.go: scores of pairs by stacked cross attention.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/cross.py

It writes ops/interaction/testdata/cross.json. Scores are written in the manner of the published
codes of SCAN and BFAN: a loop over texts, contexts of C channels, in float64; gradients are those
of autograd. Images have lengths and a class token besides, which the published codes have not.
Last run with torch 2.15.
"""

import json
import pathlib

import torch
from torch.nn import functional as F

from cases import array, rand

gen = torch.Generator().manual_seed(67)
N, T, M, L, C = 3, 5, 4, 6, 7
IMAGES, TEXTS = [5, 3, 4], [6, 3, 2, 5]
FOCAL = [6, 3, 4, 5]  # of one word the focus is 0/0 in the published code
cases = {}


def l2norm(x, dim, eps=1e-8):
    return x / (torch.pow(x, 2).sum(dim=dim, keepdim=True).sqrt() + eps)


def attention(query, context, smooth, focal):
    """Weights (queries, context) of one pair, from the rows that the attention compares."""
    attn = context @ query.T
    attn = F.leaky_relu(attn, 0.1)
    attn = l2norm(attn, 1).T
    attn = torch.softmax(attn * smooth, dim=-1)
    if focal:
        confidence = attn.sqrt() if focal == "prob" else torch.ones_like(attn)
        keep = ((attn.unsqueeze(-1) - attn.unsqueeze(-2)) * confidence.unsqueeze(-2)).sum(-1) > 0
        attn = torch.where(keep, attn, 0)
        attn = attn / attn.sum(-1, keepdim=True)
    return attn


def scores(x, y, i2t, smooth, pool, focal=False, xa=None, xs=None):
    xa, xs = x if xa is None else xa, x if xs is None else xs
    columns, ends = [], FOCAL if focal else TEXTS
    for j in range(M):
        words = y.view(M, L, C)[j, 1:ends[j]]
        column = []
        for i in range(N):
            v, va, vs = (r.view(N, T, C)[i, 1:IMAGES[i]] for r in (x, xa, xs))
            if i2t:
                p = attention(va, words, smooth, focal)
                context = p @ words
                dot = (vs * context).sum(1)
                norm = v.norm(dim=1) * context.norm(dim=1)
            else:
                p = attention(words, va, smooth, focal)
                dot = (words * (p @ vs)).sum(1)
                norm = words.norm(dim=1) * (p @ v).norm(dim=1)
            row = dot / norm.clamp(min=1e-8)
            column.append((row * pool).exp().sum().log() / pool if pool else row.mean())
        columns.append(torch.stack(column))
    return torch.stack(columns, 1)


def case(name, leaves, **how):
    x, y = rand(gen, N * T, C).requires_grad_(), rand(gen, M * L, C).requires_grad_()
    more = {n: rand(gen, N * T, C).requires_grad_() for n in leaves}
    out = scores(x, y, **how, **more)
    dy = rand(gen, N, M)
    (out * dy).sum().backward()
    rows = {"images": x, "texts": y} | {{"xa": "attention", "xs": "similarity"}[k]: v for k, v in more.items()}
    cases[name] = {k: array(t) for k, t in (rows | {"d" + k: t.grad for k, t in rows.items()} | {
        "index": torch.tensor(IMAGES), "lengths": torch.tensor(FOCAL if how.get("focal") else TEXTS), "out": out, "dy": dy}).items()}


case("t2i_lse", (), i2t=False, smooth=9, pool=6)
case("i2t_lse", (), i2t=True, smooth=4, pool=5)
case("t2i_mean_metrics", ("xa", "xs"), i2t=False, smooth=9, pool=0)
case("i2t_lse_metrics", ("xa", "xs"), i2t=True, smooth=4, pool=5)
case("t2i_focal", (), i2t=False, smooth=20, pool=0, focal=True)
case("i2t_focal_similarity", ("xs",), i2t=True, smooth=4, pool=0, focal=True)
case("t2i_focal_prob", (), i2t=False, smooth=20, pool=0, focal="prob")
case("i2t_focal_prob", (), i2t=True, smooth=4, pool=0, focal="prob")

out = pathlib.Path("ops/interaction/testdata/cross.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
