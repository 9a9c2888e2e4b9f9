"""Values for ops/contrast/sigmoid_test.go: the sigmoid loss of SigLIP.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/siglip.py

It writes ops/contrast/testdata/siglip.json. Losses are algorithm 1 of Zhai et al. 2023 in float64
on inputs that are exact in float32, gradients are those of autograd. Last run with
torch 2.15.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand

gen = torch.Generator().manual_seed(21)
cases = {}


def start(rows, cols, t_prime=1.25, bias=-1.5):
    """Leaves: scores of pairs, the logarithm of the scale and the bias."""
    scores = (rand(gen, rows, cols) / 2).requires_grad_()
    t = torch.tensor(t_prime).float().double().requires_grad_()
    b = torch.tensor(bias).float().double().requires_grad_()
    return scores, t, b


def case(name, leaves, loss, **ints):
    loss.backward()
    entry = {"out": loss}
    for key, x in zip(("scores", "logScale", "bias"), leaves):
        entry |= {key: x, "d" + key: x.grad}
    cases[name] = {k: array(v) for k, v in (entry | ints).items()}


# Algorithm 1 as it stands: pairs of one batch.
n = 5
for name, t_prime, bias in (("pairs", 1.25, -1.5), ("as the paper starts", math.log(10), -10.0), ("steep", 4.0, -30.0), ("positive bias", 3.0, 25.0)):
    leaves = scores, t, b = start(n, n, t_prime, bias)
    labels = 2 * torch.eye(n).double() - 1
    case(name, leaves, -F.logsigmoid(labels * (scores * t.exp() + b)).sum() / n, labels=torch.arange(n))

# A batch before further columns of which some exist, and a row that is left out.
leaves = scores, t, b = start(4, 9)
own, cols = torch.tensor([2, 0, -100, 6]), 7
z = torch.full((4, cols), -1.0).double()
z[[0, 1, 3], own[[0, 1, 3]]] = 1
terms = F.logsigmoid(z * (scores[:, :cols] * t.exp() + b))
case("columns", leaves, -terms[[0, 1, 3]].sum() / 3, labels=own, cols=torch.tensor(cols))

# Several positives by id, a row with none and a column that is nobody's.
leaves = scores, t, b = start(4, 7)
row_ids, col_ids = torch.tensor([7, 3, 7, 11]), torch.tensor([7, 3, 7, -100, 3, 7, 5])
z = 2 * (row_ids[:, None] == col_ids[None]).double() - 1
case("ids", leaves, -F.logsigmoid(z * (scores * t.exp() + b)).sum() / 4, rowIDs=row_ids, colIDs=col_ids)

out = pathlib.Path("ops/contrast/testdata/siglip.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
