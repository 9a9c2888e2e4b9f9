"""Values for ops/interaction/maxsim_test.go: scores of pairs by their tokens.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/interaction.py

It writes ops/interaction/testdata/interaction.json. Scores are written in the manner of the
published codes (FILIP has none; max_sum as in TERAN, the others as in DRL, whose kinds are wti
and ti) in float64, gradients are those of autograd. Last run with torch 2.15.
"""

import json
import pathlib

import torch

from cases import array, rand

gen = torch.Generator().manual_seed(61)
N, T, M, L, C = 3, 4, 4, 5, 6
cases = {}


def mask(lengths, size):
    """Tokens that take part: the first one is a class token."""
    at = torch.arange(size)[None]
    return (at >= 1) & (at < lengths[:, None])


def case(name, score, logits=False):
    x, y = rand(gen, N * T, C).requires_grad_(), rand(gen, M * L, C).requires_grad_()
    index, lengths = torch.tensor([4, 2, 3]), torch.tensor([5, 3, 2, 4])
    leaves = {"images": x, "texts": y}
    if logits:
        leaves |= {"imageLogits": rand(gen, N * T, 1).requires_grad_(), "textLogits": rand(gen, M * L, 1).requires_grad_()}
    v, w = mask(index, T), mask(lengths, L)
    a = torch.einsum("ntc,mlc->nmtl", x.view(N, T, C), y.view(M, L, C))
    a = a.masked_fill(~(v[:, None, :, None] & w[None, :, None, :]), -torch.inf)
    out = score(a, v, w, *[leaves[k].view(-1, n) for k, n in (("imageLogits", T), ("textLogits", L)) if logits])
    dy = rand(gen, N, M)
    (out * dy).sum().backward()
    cases[name] = {k: array(t) for k, t in (leaves | {"d" + k: t.grad for k, t in leaves.items()} | {"index": index, "lengths": lengths, "out": out, "dy": dy}).items()}


def texts(a, w, weights):
    """Sum over words of the maximum over patches."""
    return torch.einsum("nml,ml->nm", a.amax(2).masked_fill(~w[None], 0), weights)


def images(a, v, weights):
    return torch.einsum("nmt,nt->nm", a.amax(3).masked_fill(~v[:, None], 0), weights)


def mean(m):
    return m.double() / m.sum(1, keepdim=True)


def soft(logits, m):
    return torch.softmax(logits.masked_fill(~m, -torch.inf), 1)


case("max_sum", lambda a, v, w: texts(a, w, w.double()))
case("max_ave", lambda a, v, w: (texts(a, w, mean(w)) + images(a, v, mean(v))) / 2)
case("max_soft", lambda a, v, w, p, q: (texts(a, w, soft(q, w)) + images(a, v, soft(p, v))) / 2, logits=True)

out = pathlib.Path("ops/interaction/testdata/interaction.json")
out.parent.mkdir(exist_ok=True)
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
