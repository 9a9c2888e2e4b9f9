"""Values for objectives/metric_golden_test.go: scores of pairs by every form of the learned metric.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/metric.py

It writes objectives/testdata/metric.json. Scores are the formulas of GSSF (eq. 1 to 4), of a product of low rank and of a
network over pairs, written out pair by pair in float64 on inputs that are exact in float32; gradients are those of autograd.
Last run with torch 2.15.
"""

import json
import pathlib

import torch

from cases import array, rand

N, M, C, BLOCKS, RANK, HIDDEN = 5, 4, 6, 3, 2, 7
gen = torch.Generator().manual_seed(41)
cases = {}


def case(name, score, **params):
    """score(x, y, **params) is that of one pair."""
    x, y = rand(gen, N, C), rand(gen, M, C)
    leaves = {k: v.clone().requires_grad_() for k, v in {"x": x, "y": y, **params}.items()}
    x, y, *rest = leaves.values()
    out = torch.stack([torch.stack([score(a, b, *rest) for b in y]) for a in x])
    dy = rand(gen, N, M)
    (out * dy).sum().backward()
    entry = {k: array(v) for k, v in leaves.items()}
    cases[name] = entry | {"d" + k: array(v.grad) for k, v in leaves.items()} | {"out": array(out), "seed": array(dy)}


d = C // BLOCKS
case("diag", lambda x, y, w: (w * x * y).sum(), weight=rand(gen, C))
case("block_diag", lambda x, y, w: x @ torch.block_diag(*w) @ y, weight=rand(gen, BLOCKS, d, d))
case("dense", lambda x, y, w: x @ w @ y, weight=rand(gen, C, C))
case("sparse", lambda x, y, w: x @ w @ y, weight=rand(gen, C, C))
case("low_rank", lambda x, y, l, r: (l @ x) @ (r @ y), left=rand(gen, RANK, C), right=rand(gen, RANK, C))
case("low_rank symmetric", lambda x, y, l: (l @ x) @ (l @ y), left=rand(gen, RANK, C))
case(
    "mlp",
    lambda x, y, a, b, bias, v: x @ y + v @ torch.relu(a @ (x * y) + b @ (x - y) ** 2 + bias),
    **{"hidden/product": rand(gen, HIDDEN, C), "hidden/difference": rand(gen, HIDDEN, C), "hidden/bias": rand(gen, HIDDEN), "output/weight": rand(gen, HIDDEN)},
)

out = pathlib.Path("objectives/testdata/metric.json")
out.parent.mkdir(exist_ok=True)
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
