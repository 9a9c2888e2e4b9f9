"""Values for objectives/step_test.go: losses over leading channels.

Run with a Python that has torch and sentence-transformers, from the root of the repository:

    python tools/goldens/matryoshka.py

It writes objectives/testdata/matryoshka.json. Losses are eq. 1 of "Matryoshka Representation Learning" (Kusupati et al.
2022) with weights of 1, in float64; gradients are those of autograd. That of sentences is compared with MatryoshkaLoss of
sentence-transformers around its loss of pairs. Last run with torch 2.15, sentence-transformers 6.2.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand

N, C, DIMS, TAU = 5, 8, (3, 6), 0.25
gen = torch.Generator().manual_seed(51)
cases = {}


def leading(x, d):
    return F.normalize(x[:, :d], dim=1)


def halves(x, d):
    """Whole spheres of two channels of Ob(2,4)."""
    return F.normalize(x[:, :d].reshape(len(x), -1, 2), dim=2).reshape(len(x), d)


def case(name, loss, truncate=leading, dims=DIMS):
    x, y = (truncate(rand(gen, N, C), C).float().double().requires_grad_() for _ in range(2))
    parts = [loss(x, y)] + [loss(truncate(x, d), truncate(y, d)) for d in dims]
    sum(parts).backward()
    cases[name] = {k: array(v) for k, v in {"x": x, "y": y, "dx": x.grad, "dy": y.grad, "parts": torch.stack(parts)}.items()}
    return x, y, sum(parts)


def contrast(x, y):
    s, own = x @ y.T / TAU, torch.arange(N)
    return (F.cross_entropy(s, own) + F.cross_entropy(s.T, own)) / 2


def sigmoid(x, y):
    labels = 2 * torch.eye(N).double() - 1
    return -F.logsigmoid(labels * (4 * x @ y.T - 3)).sum() / N


def hinge(x, y):
    """Of all negatives (VSE++, eq. 4)."""
    s = x @ y.T
    own, off = s.diagonal(), 1 - torch.eye(N).double()
    return (((0.2 + s - own[:, None]).relu() + (0.2 + s - own[None]).relu()) * off).sum()


def distances(x, y):
    """The contrast of distances in a Euclidean space, where nothing is normalised."""
    d = -(x[:, None] - y[None]).norm(dim=2) / TAU
    own = torch.arange(N)
    return (F.cross_entropy(d, own) + F.cross_entropy(d.T, own)) / 2


def sentences(x, y):
    """A head normalises what it is given."""
    return F.cross_entropy(leading(x, C) @ leading(y, C).T / TAU, torch.arange(N))


case("itc", contrast)
case("itc on spheres", contrast, halves, (2, 6))
case("itc of distances", distances, lambda x, d: x[:, :d])
case("siglip", sigmoid)
case("hinge", hinge)
x, y, want = case("simcse", sentences)

from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss


class Given(torch.nn.Module):
    """A model whose embeddings are given."""

    def get_embedding_dimension(self):
        return C

    def forward(self, features):
        return {"sentence_embedding": features["x"].float()}


model = Given()
loss = MatryoshkaLoss(model, MultipleNegativesRankingLoss(model, scale=1 / TAU), [C, *DIMS])
got = loss([{"x": x.detach()}, {"x": y.detach()}], torch.zeros(0)).item()
assert math.isclose(got, want.item(), rel_tol=1e-5), (got, want.item())

out = pathlib.Path("objectives/testdata/matryoshka.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
