"""Values for ops/relation: divergences of transport plans and of random walks.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/relation.py

It writes ops/relation/testdata/relation.json. Everything is float64 on inputs that are exact
in float32, and gradients are those of autograd: through every iteration of Sinkhorn, and
through every product of the powers. Last run with torch 2.15.
"""

import json
import pathlib

import torch

from cases import array, rand

gen = torch.Generator().manual_seed(31)
cases = {}


def plan(s, eps, rounds=3000):
    """The plan with masses 1/n and 1/m in the log domain."""
    n, m = s.shape
    log_n, log_m = torch.tensor(float(n)).double().log(), torch.tensor(float(m)).double().log()
    f, g = torch.zeros(n).double(), torch.zeros(m).double()
    for _ in range(rounds):
        f = -torch.logsumexp(s / eps + g, 1) - log_n
        g = -torch.logsumexp(s / eps + f[:, None], 0) - log_m
    return s / eps + f[:, None] + g


def case(name, scores, target, loss):
    loss.backward()
    cases[name] = {k: array(v) for k, v in {"scores": scores, "target": target, "out": loss, "dscores": scores.grad}.items()}


for name, n, m, eps, target_eps in (("plans", 5, 5, 0.5, 0.5), ("plans of two eps", 4, 7, 0.25, 1.0), ("plans, sharp target", 6, 4, 1.0, 0.125)):
    scores, target = (rand(gen, n, m) / 2).requires_grad_(), rand(gen, n, m) / 2
    log_t, log_p = plan(target, target_eps), plan(scores, eps)
    case(name, scores, target, (log_t.exp() * (log_t - log_p)).sum())

for name, n, tau, target_tau, hops in (("one hop", 6, 0.5, 0.5, 1), ("three hops", 5, 0.5, 0.25, 3), ("four hops", 7, 1.0, 1.0, 4)):
    scores, target = (rand(gen, n, n) / 2).requires_grad_(), rand(gen, n, n) / 2
    p, q = (target / target_tau).softmax(1), (scores / tau).softmax(1)
    total = 0
    for hop in range(1, hops + 1):
        a, b = torch.linalg.matrix_power(p, hop), torch.linalg.matrix_power(q, hop)
        mid = (a + b) / 2
        total = total + (a * (a / mid).log() + b * (b / mid).log()).sum(1).mean() / 2
    case(name, scores, target, total / hops)

out = pathlib.Path("ops/relation/testdata/relation.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
