"""Values for ops/interaction/negative_test.go: scores of pairs by negative-aware attention.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/negative.py

It writes ops/interaction/testdata/negative.json. Each pair is scored by itself with contexts of C
channels, in float64; gradients are those of autograd. Last run with torch 2.15.
"""

import json
import pathlib

import torch
from torch.nn import functional as F

from cases import array, rand

gen = torch.Generator().manual_seed(72)
N, T, M, L, C = 3, 5, 4, 6, 7
IMAGES, TEXTS, BOUND = [5, 3, 4], [6, 3, 2, 5], 0.3125
cases = {}


def pair(q, k, ka, ks, smooth):
    a, s = q @ ka.T, q @ ks.T
    over = s.max(1).values - BOUND
    spread = over if not smooth else torch.softmax(smooth * q @ q.T, 1) @ over
    negative = over * (spread < 0)
    p = torch.exp(20 * (a - a.max(1, keepdim=True).values)).masked_fill(a <= BOUND, 0)
    p = p / p.sum(1, keepdim=True).clamp(min=1e-30)
    c = p @ k
    f = (q * (p @ ks)).sum(1) / (q.norm(dim=1) * c.square().sum(1).clamp(min=1e-30).sqrt())
    b = F.leaky_relu(a, 0.1)
    w = torch.softmax(20 * b / (b.norm(dim=0, keepdim=True) + 1e-8), 1)
    return (negative + f + (w * s).sum(1)).mean()


def unit(*shape):
    return F.normalize(rand(gen, *shape), dim=-1).float().double()


def case(name, smooth, metrics):
    x, y = unit(N * T, C).requires_grad_(), unit(M * L, C).requires_grad_()
    leaves = {"images": x, "texts": y}
    if metrics:
        leaves |= {k: unit(N * T, C).requires_grad_() for k in ("attention", "similarity")}
    rows = []
    for i in range(N):
        row = []
        for j in range(M):
            at = slice(1, IMAGES[i])
            k = x.view(N, T, C)[i, at]
            ka, ks = (leaves[m].view(N, T, C)[i, at] if metrics else k for m in ("attention", "similarity"))
            row.append(pair(y.view(M, L, C)[j, 1:TEXTS[j]], k, ka, ks, smooth))
        rows.append(torch.stack(row))
    out, dy = torch.stack(rows), rand(gen, N, M)
    (out * dy).sum().backward()
    cases[name] = {k: array(t) for k, t in (leaves | {"d" + k: t.grad for k, t in leaves.items()} | {
        "boundary": torch.tensor([BOUND], dtype=torch.float64), "index": torch.tensor(IMAGES), "lengths": torch.tensor(TEXTS), "out": out, "dy": dy}).items()}


case("words", 0, False)
case("words_metrics", 0, True)
case("smooth", 5, False)
case("smooth_metrics", 5, True)

out = pathlib.Path("ops/interaction/testdata/negative.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
