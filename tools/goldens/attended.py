"""Golden values for TestAttendedGolden of ops/recurrent.

torch.gru_cell word by word, whose input is what a token gives to the gates plus additive attention to a memory, over sequences
and memories of several lengths, and all gradients. Places beyond a length have states 0.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/attended.py

It writes ops/recurrent/testdata/attended.json. Every number comes from torch in float64 on inputs that are exact in float32.
Last run with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand

L, M, H = 4, 3, 5
LENGTHS, MEMORY = torch.tensor([4, 1, 3, 2]), torch.tensor([3, 2, 1, 3])
R = len(LENGTHS)


def case(gen):
    shapes = {"x": (R * L, 3 * H), "keys": (R * M, H), "values": (R * M, 3 * H), "query": (H, H), "score": (H,), "weight_hh": (3 * H, H), "bias_hh": (3 * H,), "start": (R, H)}
    p = {k: (rand(gen, *s) / 2).requires_grad_() for k, s in shapes.items()}
    zeros, state, states = torch.zeros(3 * H).double(), p["start"], []
    counts = torch.arange(M) < MEMORY.unsqueeze(1)
    for t in range(L):
        hidden = F.linear(state, p["query"]).unsqueeze(1)
        scores = torch.tanh(p["keys"].view(R, M, H) + hidden) @ p["score"]
        weights = torch.softmax(scores.masked_fill(~counts, -torch.inf), 1)
        inputs = p["x"].view(R, L, -1)[:, t] + torch.bmm(weights.unsqueeze(1), p["values"].view(R, M, -1)).squeeze(1)
        state = torch.gru_cell(inputs, state, torch.eye(3 * H).double(), p["weight_hh"], zeros, p["bias_hh"])
        states.append(state * (t < LENGTHS).unsqueeze(1))
    out = torch.stack(states, 1).reshape(R * L, H)
    dy = rand(gen, *out.shape)
    out.backward(dy)
    values = {"out": out, "dy": dy, "lengths": LENGTHS, "memory": MEMORY}
    for k, v in p.items():
        values[k], values["d" + k] = v, v.grad
    return {k: array(v) for k, v in values.items()}


path = pathlib.Path("ops/recurrent/testdata/attended.json")
path.write_text(json.dumps({"attended": case(torch.Generator().manual_seed(1))}, separators=(",", ":")) + "\n")
