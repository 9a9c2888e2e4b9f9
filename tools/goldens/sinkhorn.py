"""Values for ops/contrast/sinkhorn_test.go: balanced codes of SwAV.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/sinkhorn.py

It writes ops/contrast/testdata/sinkhorn.json. The iteration is algorithm 1 of Caron et al. 2020,
appendix A, in float64 on inputs that are exact in float32: with Q = exp(scores/eps)^T,
each round makes the rows (prototypes) of equal sum and then the columns (samples). Last
run with torch 2.15.
"""

import json
import pathlib

import torch

gen = torch.Generator().manual_seed(12)


def array(x):
    return {"shape": list(x.shape), "data": [float(f"{v:.9g}") for v in x.flatten().double().tolist()]}


def codes(scores, eps, iterations):
    q = torch.exp(scores / eps).T
    q = q / q.sum()
    k, n = q.shape
    for _ in range(iterations):
        q = q / q.sum(dim=1, keepdim=True) / k
        q = q / q.sum(dim=0, keepdim=True) / n
    return (q * n).T


def case(b, queue, rows, k, eps, iterations):
    s = torch.randint(-64, 65, (b + queue, k), generator=gen).double() / 64
    live = torch.cat([s[:b], s[b : b + rows]])
    out = {"scores": array(s[:b]), "codes": array(codes(live, eps, iterations)[:b])}
    out["settings"] = array(torch.tensor([eps, iterations, rows], dtype=torch.float64))
    return out | ({"queue": array(s[b:])} if queue else {})


cases = {
    "batch": case(6, 0, 0, 4, 0.05, 3),
    "batch and queue": case(5, 7, 7, 9, 0.05, 3),
    "queue not full": case(5, 7, 3, 9, 0.05, 3),
    "empty queue": case(4, 3, 0, 5, 0.1, 1),
    "many rounds": case(8, 0, 0, 8, 0.25, 50),
}
path = pathlib.Path("ops/contrast/testdata/sinkhorn.json")
path.write_text(json.dumps(cases, indent=1) + "\n")
