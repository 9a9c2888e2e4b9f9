"""Values for objectives/distill_scores_test.go: distillation by the scores of a batch.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/distill_scores.py

It writes objectives/testdata/distill_scores.json: torch's kl_div of softmaxes over rows and over columns, the teacher's scores
detached, and with a metric on the teacher's features the cross entropy of its scores, in float64. Last run with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand

B, C, D, BLOCKS = 5, 4, 6, 3
gen = torch.Generator().manual_seed(52)
cases = {}


def case(name, temperature, weight=None):
    x, y, u, v = rand(gen, B, C).requires_grad_(), rand(gen, B, C).requires_grad_(), rand(gen, B, D), rand(gen, B, D)
    student, leaves = x @ y.T / temperature, {"x": x, "y": y}
    w = torch.eye(D).double()
    if weight is not None:
        leaves["weight"] = weight.requires_grad_()
        w = torch.block_diag(*weight) if weight.dim() == 3 else torch.diag(weight)
    teacher = u @ w @ v.T / temperature
    kl = lambda s, t: F.kl_div(s.log_softmax(1), t.detach().softmax(1), reduction="batchmean")
    out = kl(student, teacher) + kl(student.T, teacher.T)
    entry = {"u": u, "v": v, "divergence": out}
    if weight is not None:
        own = torch.arange(B)
        task = (F.cross_entropy(teacher, own) + F.cross_entropy(teacher.T, own)) / 2
        entry["task"], out = task, out + task
    out.backward()
    cases[name] = {k: array(t) for k, t in (entry | leaves | {"d" + k: t.grad for k, t in leaves.items()}).items()}


case("scores", 1.0)
case("sharper", 0.5)
case("diag", 1.0, rand(gen, D))
case("block_diag", 2.0, rand(gen, BLOCKS, D // BLOCKS, D // BLOCKS))

out = pathlib.Path("objectives/testdata/distill_scores.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
