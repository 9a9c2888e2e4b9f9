"""Values for ops/interaction/vectors_test.go: scores of pairs by vectors of similarity.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/vectors.py

It writes ops/interaction/testdata/vectors.json. Scores are those of SGRAF, a pair at a time, in
float64 with torch's linear layers, normalisations and softmax; gradients are those of autograd.
Last run with torch 2.15.
"""

import json
import pathlib

import torch
from torch.nn import functional as F

from cases import array, rand

gen = torch.Generator().manual_seed(71)
N, T, M, L, C, S = 3, 5, 4, 6, 7, 4
IMAGES, TEXTS = [5, 3, 4], [6, 3, 2, 5]  # ends; the first token takes no part
cases = {}


def unit(x):
    return x / (x.norm(dim=-1, keepdim=True) + 1e-8)


def linear(p, name, x):
    return F.linear(x, p[name + "/weight"], p.get(name + "/bias"))


def pair(p, v, attended, folded, words, image, text, steps):
    logits = F.leaky_relu(words @ attended.T, 0.1)
    weights = torch.softmax(9 * logits / (logits.norm(dim=0, keepdim=True) + 1e-8), dim=1)
    context = (weights @ folded) / ((weights @ v).norm(dim=1, keepdim=True) + 1e-8)
    local = unit(linear(p, "local", (context - words) ** 2))
    whole = unit(linear(p, "global", ((image - text) ** 2).unsqueeze(0)))
    nodes = torch.cat([whole, local])
    for i in range(steps):
        edges = torch.softmax(linear(p, f"query{i}", nodes) @ linear(p, f"key{i}", nodes).T, dim=1)
        nodes = F.relu(linear(p, f"out{i}", edges @ nodes))
    if steps:
        f = nodes[0]
    else:
        gates = torch.sigmoid(linear(p, "gate", nodes)).squeeze(1)
        f = unit((F.normalize(gates, p=1, dim=0).unsqueeze(1) * nodes).sum(0))
    return torch.sigmoid(linear(p, "score", f)).squeeze(0)


def case(name, steps, metrics=False):
    shapes = {"images": (N * T, C), "texts": (M * L, C), "whole images": (N, C), "whole texts": (M, C)}
    if metrics:
        shapes |= {"attention": (N * T, C), "similarity": (N * T, C)}
    layers = {"local": (S, C), "global": (S, C), "score": (1, S)}
    layers |= {f"{k}{i}": (S, S) for i in range(steps) for k in ("query", "key", "out")} if steps else {"gate": (1, S)}
    for k, (out, inputs) in layers.items():
        shapes[k + "/weight"] = (out, inputs)
        if not k.startswith("key"):  # a softmax does not see the bias of keys
            shapes[k + "/bias"] = (out,)
    p = {k: (rand(gen, *shape) / 2).requires_grad_() for k, shape in shapes.items()}
    rows = []
    for i in range(N):
        row = []
        for j in range(M):
            v, a, f = (p.get(k, p["images"]).view(N, T, C)[i, 1:IMAGES[i]] for k in ("images", "attention", "similarity"))
            words = p["texts"].view(M, L, C)[j, 1:TEXTS[j]]
            row.append(pair(p, v, a, f, words, p["whole images"][i], p["whole texts"][j], steps))
        rows.append(torch.stack(row))
    out = torch.stack(rows)
    dy = rand(gen, N, M)
    (out * dy).sum().backward()
    tensors = p | {"d" + k: v.grad for k, v in p.items()} | {"index": torch.tensor(IMAGES), "lengths": torch.tensor(TEXTS), "out": out, "dy": dy}
    cases[name] = {k: array(v) for k, v in tensors.items()}


case("reasoning", 2)
case("reasoning_metrics", 1, metrics=True)
case("filtration", 0)
case("filtration_metrics", 0, metrics=True)

out = pathlib.Path("ops/interaction/testdata/vectors.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
