"""Values for ops/contrast/tiled_test.go: the contrast of features.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/tiled.py

It writes ops/contrast/testdata/tiled.json. Losses are torch.nn.functional.cross_entropy in float64 on
inputs that are exact in float32, of the products of features and of their transpose; gradients are those of autograd.
Last run with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand

gen = torch.Generator().manual_seed(53)
cases = {}


def case(name, rows, cols, width, labels, both, scale=1.0):
    x = (scale * rand(gen, rows, width)).float().double().requires_grad_()
    y = rand(gen, cols, width).requires_grad_()
    s = x @ y.T
    loss = F.cross_entropy(s, labels)
    if both:
        loss = (loss + F.cross_entropy(s.T, torch.argsort(labels))) / 2
    loss.backward()
    entry = {"images": x, "texts": y, "labels": labels, "out": loss, "dimages": x.grad, "dtexts": y.grad}
    cases[name] = {k: array(v) for k, v in entry.items()}


case("both", 5, 5, 3, torch.arange(5), True)
case("both, steep", 6, 6, 4, torch.arange(6), True, 40.0)
case("both, shuffled", 5, 5, 2, torch.tensor([3, 0, 4, 1, 2]), True)
case("rows", 3, 7, 4, torch.tensor([2, 0, 6]), False)

pathlib.Path("ops/contrast/testdata/tiled.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
