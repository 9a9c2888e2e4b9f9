"""Values for objectives/distill_scores_test.go: distillation by the scores of a batch.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/distill_scores.py

It writes objectives/testdata/distill_scores.json: torch's kl_div of softmaxes over rows and over columns, the teacher's scores
detached, and with a metric on the teacher's features the cross entropy of its scores, in float64. distill_tokens.json has
the same of teachers that compare tokens, pair by pair with contexts (SCAN, NAAF). Last run with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand

B, C, D, BLOCKS = 5, 4, 6, 3
gen = torch.Generator().manual_seed(52)
cases, of_tokens = {}, {}
T, L = 3, 4
IMAGES, TEXTS = [3, 2, 3, 1, 2], [4, 1, 2, 3, 4]  # tokens of each
BOUNDARY = 0.125


def attention(products, scale):
    """p_qk of products (q, k), with norms over the queries."""
    b = F.leaky_relu(products, 0.1)
    return (scale * b / (b.norm(dim=0, keepdim=True) + 1e-8)).softmax(1)


def scan(images, texts, w):
    """Words attend to regions (scale 9) and are compared by the metric, the logarithm of the sum of exponentials (6)."""
    context = attention(texts @ images.T, 9) @ images
    return (6 * torch.stack([F.normalize(c, dim=0) @ w @ q for c, q in zip(context, texts)])).logsumexp(0) / 6


def scan_regions(images, texts, w):
    """Regions attend to words (scale 4), their mean."""
    context = attention(images @ texts.T, 4) @ texts
    return torch.stack([q @ w @ F.normalize(c, dim=0) for c, q in zip(context, images)]).mean()


def naaf(images, texts, w):
    """Negative-aware attention in evaluation: words that are alike share whether they are mismatched (scale 5)."""
    a, s = texts @ images.T, (images @ w @ texts.T).T
    above = s.max(1).values - BOUNDARY
    shared = (5 * texts @ texts.T).softmax(1) @ above
    mismatch = torch.where(shared < 0, above, torch.zeros_like(above))
    total = mismatch + (attention(a, 20) * s).sum(1)
    for q in range(len(texts)):
        seen = a[q] > BOUNDARY
        if seen.any():
            p = (20 * a[q][seen]).softmax(0)
            total[q] = total[q] + (p * s[q][seen]).sum() / (p @ images[seen]).norm()
    return total.mean()


def case(name, temperature, weight=None, tokens=None):
    x, y = rand(gen, B, C).requires_grad_(), rand(gen, B, C).requires_grad_()
    u, v = rand(gen, B, *((T,) if tokens else ()), D), rand(gen, B, *((L,) if tokens else ()), D)
    student, leaves = x @ y.T / temperature, {"x": x, "y": y}
    w = torch.eye(D).double()
    if weight is not None:
        leaves["weight"] = weight.requires_grad_()
        w = torch.block_diag(*weight) if weight.dim() == 3 else torch.diag(weight)
    if tokens:
        u, v = F.normalize(u, dim=-1), F.normalize(v, dim=-1)
        pairs = [[tokens(i[:n], t[:m], w) for t, m in zip(v, TEXTS)] for i, n in zip(u, IMAGES)]
        teacher = torch.stack([torch.stack(row) for row in pairs]) / temperature
    else:
        teacher = u @ w @ v.T / temperature
    kl = lambda s, t: F.kl_div(s.log_softmax(1), t.detach().softmax(1), reduction="batchmean")
    out = kl(student, teacher) + kl(student.T, teacher.T)
    entry = {"u": u, "v": v, "divergence": out}
    if weight is not None:
        own = torch.arange(B)
        task = (F.cross_entropy(teacher, own) + F.cross_entropy(teacher.T, own)) / 2
        entry["task"], out = task, out + task
    out.backward()
    (of_tokens if tokens else cases)[name] = {k: array(t) for k, t in (entry | leaves | {"d" + k: t.grad for k, t in leaves.items()}).items()}


case("scores", 1.0)
case("sharper", 0.5)
case("diag", 1.0, rand(gen, D))
case("block_diag", 2.0, rand(gen, BLOCKS, D // BLOCKS, D // BLOCKS))
case("scan", 1.0, rand(gen, D), scan)
case("scan of regions", 0.5, rand(gen, BLOCKS, D // BLOCKS, D // BLOCKS), scan_regions)
case("naaf", 1.0, rand(gen, BLOCKS, D // BLOCKS, D // BLOCKS), naaf)

for name, of in {"distill_scores": cases, "distill_tokens": of_tokens}.items():
    out = pathlib.Path(f"objectives/testdata/{name}.json")
    out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in of.items()) + "\n}\n")
