"""Golden values for ops/recurrent/golden_test.go.

nn.GRU over packed sequences of every length, in one direction and in both, with and without
states to start from, and all gradients. Places beyond a length have states 0. In both directions the
states are the forward ones and the reverse ones side by side, which the test takes apart.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/gru.py

It writes ops/recurrent/testdata/gru.json. Every number comes from torch in float64 on inputs that are
exact in float32. Last run with torch 2.15.
"""

import json
import pathlib

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from cases import array, rand

L, IN, H = 5, 3, 4
LENGTHS = torch.tensor([3, 5, 1, 2, 4])
PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def case(gen, both, start):
    n = 2 if both else 1
    gru = torch.nn.GRU(IN, H, batch_first=True, bidirectional=both).double()
    for p in gru.parameters():
        p.data = rand(gen, *p.shape) / 2
    x = rand(gen, len(LENGTHS) * L, IN).requires_grad_()
    first = rand(gen, n * len(LENGTHS), H).requires_grad_()
    packed = pack_padded_sequence(x.view(-1, L, IN), LENGTHS, batch_first=True, enforce_sorted=False)
    out, last = gru(packed, first.view(n, -1, H)) if start else gru(packed)
    out = pad_packed_sequence(out, batch_first=True, total_length=L)[0].reshape(-1, n * H)
    dy = rand(gen, *out.shape)
    out.backward(dy)
    values = {"x": x, "dx": x.grad, "lengths": LENGTHS, "out": out, "dy": dy, "last": last.reshape(-1, H)}
    if start:
        values |= {"start": first, "dstart": first.grad}
    for name in PARTS:
        for theirs, ours in (("_l0", ""), ("_l0_reverse", "_reverse"))[:n]:
            p = getattr(gru, name + theirs)
            values[name + ours], values["d" + name + ours] = p, p.grad
    return {k: array(v) for k, v in values.items()}


gen = torch.Generator().manual_seed(1)
cases = {f"{'both' if both else 'forward'}{' from states' if start else ''}": case(gen, both, start) for both in (False, True) for start in (False, True)}
path = pathlib.Path("ops/recurrent/testdata/gru.json")
path.parent.mkdir(exist_ok=True)
path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
