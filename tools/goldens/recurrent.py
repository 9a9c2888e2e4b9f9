"""Values for ops/interaction/recurrent_test.go: scores of pairs by recurrent attention memory.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/recurrent.py

It writes ops/interaction/testdata/recurrent.json. Each pair is scored by itself with contexts of C
channels and an nn.Linear of the joined rows for each gate, in float64; gradients are those of
autograd. Last run with torch 2.15.
"""

import json
import pathlib

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from cases import array
from cases import rand as wide

gen = torch.Generator().manual_seed(71)
N, T, M, L, C = 3, 5, 4, 6, 7
IMAGES, TEXTS = [5, 3, 4], [6, 3, 2, 5]
cases = {}


def rand(gen, *shape):
    return wide(gen, *shape) / 4  # of long rows the gates saturate


def linear(weight, bias, x):
    return functional_call(nn.Linear(2 * C, C).double(), {"weight": weight, "bias": bias}, (x,))


def pair(q, k, ka, ks, smooth, steps, unit, pool, weight, bias):
    x, total = q, 0
    for _ in range(steps):
        b = F.leaky_relu(x @ ka.T, 0.1)
        p = torch.softmax(smooth * b / (b.norm(dim=0, keepdim=True) + 1e-8), dim=1)
        c = p @ k
        r = (q * (p @ ks)).sum(1) / (q.norm(dim=1) * c.norm(dim=1)).clamp(min=1e-8)
        total = total + (torch.logsumexp(pool * r, 0) / pool if pool else r.mean())
        both = torch.cat([x, c], 1)
        g = torch.sigmoid(linear(weight[:C], bias[:C], both))
        x = g * x + (1 - g) * torch.tanh(linear(weight[C:], bias[C:], both))
        if unit:
            x = x / (x.norm(dim=1, keepdim=True) + 1e-8)
    return total


def case(name, i2t, smooth, steps, unit=False, pool=0, metrics=False):
    x, y = rand(gen, N * T, C).requires_grad_(), rand(gen, M * L, C).requires_grad_()
    weight, bias = rand(gen, 2 * C, 2 * C).requires_grad_(), rand(gen, 2 * C).requires_grad_()
    leaves = {"images": x, "texts": y, "weight": weight, "bias": bias}
    context = y if i2t else x
    if metrics:
        leaves |= {k: rand(gen, *context.shape).requires_grad_() for k in ("attention", "similarity")}
    rows = []
    for i in range(N):
        row = []
        for j in range(M):
            q, k = x.view(N, T, C)[i, 1:IMAGES[i]], y.view(M, L, C)[j, 1:TEXTS[j]]
            at, n = (slice(1, TEXTS[j]), j) if i2t else (slice(1, IMAGES[i]), i)
            if not i2t:
                q, k = k, q
            ka, ks = (leaves[m].view(-1, L if i2t else T, C)[n, at] if metrics else k for m in ("attention", "similarity"))
            row.append(pair(q, k, ka, ks, smooth, steps, unit, pool, weight, bias))
        rows.append(torch.stack(row))
    out, dy = torch.stack(rows), rand(gen, N, M)
    (out * dy).sum().backward()
    cases[name] = {k: array(t) for k, t in (leaves | {"d" + k: t.grad for k, t in leaves.items()} | {
        "index": torch.tensor(IMAGES), "lengths": torch.tensor(TEXTS), "out": out, "dy": dy}).items()}


case("t2i", False, 9, 3)
case("i2t", True, 4, 3)
case("t2i_metrics", False, 9, 2, unit=True, metrics=True)
case("i2t_metrics", True, 4, 3, unit=True, pool=5, metrics=True)

out = pathlib.Path("ops/interaction/testdata/recurrent.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
