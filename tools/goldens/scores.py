"""Values for ops/scores_golden_test.go.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/scores.py

It writes ops/testdata/scores.json. Every number comes from torch in float64 on
inputs that are exact in float32; gradients are those of sum(out*dy) by autograd
of the definitions. Last run with torch 2.15.
"""

import json
import pathlib

import torch

from cases import array, rand


gen = torch.Generator().manual_seed(5)
cases = {}


def case(name, run, ints=None, **inputs):
    ints = ints or {}
    leaves = {k: v.clone().requires_grad_() for k, v in inputs.items()}
    out = run(**leaves, **ints)
    dy = rand(gen, *out.shape)
    (out * dy).sum().backward()
    entry = {k: array(v) for k, v in {**inputs, **ints}.items()}
    entry.update({"d" + k: array(v.grad) for k, v in leaves.items()})
    cases[name] = {**entry, "dy": array(dy), "out": array(out)}


def groups(x, n, eps=0.125):
    parts = x.reshape(len(x), n, -1)
    return (parts / parts.norm(dim=2, keepdim=True).clamp_min(eps)).reshape(x.shape)


def blocks(x, w, transposed):
    if w.dim() == 2:
        w = w[None]
    parts = x.reshape(len(x), len(w), -1)
    return torch.einsum("bij,rbi->rbj" if transposed else "bij,rbj->rbi", w, parts).reshape(x.shape)


def l2(f, x):
    return -(f[:, None] - x[None]).norm(dim=2)


def angle(f, x, n):
    """Spheres' cosines are limited to 1 - 1e-6 as float32 has it."""
    limit = 1 - 17 * 2.0**-24
    c = torch.einsum("fkc,xkc->fxk", f.reshape(len(f), n, -1), x.reshape(len(x), n, -1))
    return -c.clamp(-limit, limit).acos().square().sum(2).sqrt()


def scores(f, keys, queue, cols, run):
    out = run(f, torch.cat([keys, queue]))
    return out * (torch.arange(out.shape[1]) < cols)


def units(n, m, size):
    x = groups(torch.randn(n, m * size, generator=gen).double(), m, 1e-12)
    return x.float().double()


case("groups", lambda x: groups(x, 3), x=rand(gen, 4, 6))
case("diagonal", lambda x, w: x * w, x=rand(gen, 5, 6), w=rand(gen, 6))
for transposed in (False, True):
    suffix = ", transposed" if transposed else ""
    case("blocks" + suffix, lambda x, w: blocks(x, w, transposed), x=rand(gen, 5, 6), w=rand(gen, 2, 3, 3))
    case("blocks of one" + suffix, lambda x, w: blocks(x, w, transposed), x=rand(gen, 5, 4), w=rand(gen, 4, 1, 1))
    case("dense" + suffix, lambda x, w: blocks(x, w, transposed), x=rand(gen, 5, 4), w=rand(gen, 4, 4))
case("mul exp", lambda x, s: x * s.exp(), x=rand(gen, 3, 4), s=torch.tensor(0.75).double())
case("combine", lambda x, v, z: 0.25 * x - 3 * v + 0.5 * z, x=rand(gen, 3, 4), v=rand(gen, 3, 4), z=rand(gen, 3, 4))
more = {"queue": rand(gen, 5, 6), "cols": torch.tensor(7)}
case("l2", lambda **k: scores(run=l2, **k), more, f=rand(gen, 3, 6), keys=rand(gen, 4, 6))
for m in (1, 3):
    more = {"queue": units(5, m, 6 // m), "cols": torch.tensor(7)}
    case(f"angle of {m}", lambda **k: scores(run=lambda f, x: angle(f, x, m), **k), more, f=units(3, m, 6 // m), keys=units(4, m, 6 // m))

out = pathlib.Path("ops/testdata/scores.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
