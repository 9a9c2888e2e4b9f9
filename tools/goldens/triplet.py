"""Values for ops/contrast/triplet_test.go: the triplet loss of samples with identities.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/triplet.py

It writes ops/contrast/testdata/triplet.json: batch hard and batch all of Hermans et al. (2017), on distances that are
the negative scores, in float64 on inputs that are exact in float32; gradients are those of autograd.
"""

import json
import pathlib

import torch

from cases import array, rand

gen = torch.Generator().manual_seed(71)
cases = {}
ids = torch.tensor([4, 2, 4, 7, 2, 9, 4])
n = len(ids)
same = ids[:, None] == ids[None]
positive = same & ~torch.eye(n).bool()
anchors = positive.any(1) & (~same).any(1)
inf = torch.tensor(float("inf")).double()


def hard(dist):
    far = torch.where(positive, dist, -inf).amax(1)
    near = torch.where(~same, dist, inf).amin(1)
    return (far - near)[anchors]


def every(dist):
    d = dist[:, :, None] - dist[:, None, :]
    return d[positive[:, :, None] & ~same[:, None, :]]


for name, triplets in (("hard", hard), ("all", every)):
    for kind, f in (("", lambda v: (v + 0.25).clamp(min=0)), (" soft", torch.nn.functional.softplus)):
        s = (rand(gen, n, n) / 2).requires_grad_()
        out = f(triplets(-s)).mean()
        out.backward()
        cases[name + kind] = {k: array(v) for k, v in {"scores": s, "dscores": s.grad, "ids": ids, "out": out}.items()}

out = pathlib.Path("ops/contrast/testdata/triplet.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
