"""Values for ops/contrast/pairloss_test.go: losses over the scores of the pairs of a batch.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/pairloss.py

It writes ops/contrast/testdata/pairloss.json: sums over rows and columns. The hinge is written as in VSE++, the
polynomial loss and CMPM as their definitions say, in float64 on inputs that are exact in float32;
gradients are those of autograd. Last run with torch 2.15.
"""

import json
import pathlib

import torch

from cases import array, rand

gen = torch.Generator().manual_seed(63)
cases = {}
n = 6
ids = torch.tensor([4, 2, 4, 7, 2, 9])


def hinge(s, same, hardest):
    d = s.diag()[:, None]
    rows, cols = (0.2 + s - d).clamp(min=0), (0.2 + s - d.t()).clamp(min=0)
    rows, cols = rows.masked_fill(same, 0), cols.masked_fill(same, 0)
    if hardest:
        rows, cols = rows.amax(1), cols.amax(0)
    return rows.sum() + cols.sum()


def poly(s, same, _):
    total = s.sum() * 0
    for x in (s, s.t()):
        for i in range(n):
            p, negatives = x[i, i], x[i][~same[i]]
            negatives = negatives[negatives + 0.2 > p.item()]
            if len(negatives) and p.item() < 1 - 1e-5:
                m = negatives.max()
                total = total + (0.2 * p**2 - 0.7 * p + 0.5).clamp(min=0) + (0.9 * m**2 - 0.4 * m + 0.03).clamp(min=0)
    return total


def cmpm(s, same, _):
    q = same.double() / same.sum(1, keepdim=True)
    return sum((torch.softmax(4 * x, 1) * (torch.log_softmax(4 * x, 1) - (q + 1e-8).log())).sum() for x in (s, s.t()))


def case(name, loss, hardest=1.0, by_id=False):
    s = (rand(gen, n, n) / 2).requires_grad_()
    same = ids[:, None] == ids[None] if by_id else torch.eye(n).bool()
    out = loss(s, same, hardest)
    out.backward()
    entry = {"scores": s, "dscores": s.grad, "hardest": torch.tensor(hardest).double(), "out": out}
    if by_id:
        entry["ids"] = ids
    cases[name] = {k: array(v) for k, v in entry.items()}


case("hinge", hinge)
case("hinge all", hinge, hardest=0.0)
case("hinge ids", hinge, by_id=True)
case("poly", poly)
case("cmpm", cmpm)
case("cmpm ids", cmpm, by_id=True)

out = pathlib.Path("ops/contrast/testdata/pairloss.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
