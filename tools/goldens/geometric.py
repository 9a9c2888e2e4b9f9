"""Values for ops/geometric/golden_test.go: the geometric regulariser and its gradients.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/geometric.py

It writes ops/geometric/testdata/geometric.json. The loss is eq. 3 of Klebe et al., "GeRA", with the
kernels of section 4.2, in float64 on inputs that are exact in float32, and its gradients
for the head are autograd's. One anchor is in the queue twice and has both rows among its
neighbours; the square root of a distance of 0 is given the gradient 0. Last run with
torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

gen = torch.Generator().manual_seed(31)
B, Q, K, EPS = 5, 12, 6, 0.8


def array(x):
    return {"shape": list(x.shape), "data": [float(f"{v:.9g}") for v in x.flatten().double().tolist()]}


def values(*shape):
    return torch.randint(-64, 65, shape, generator=gen).double() / 64


def weights(x, kernel, scale):
    if scale == "unit":
        x = F.normalize(x, dim=-1, eps=1e-12)
    d2 = (x[:, None] - x[None]).square().sum(-1)
    if scale == "relative":
        d2 = d2 / (d2.sum() / (K * (K - 1)))
    same = d2 < 1e-12
    if kernel == "heat":
        k = torch.exp(-d2 / (4 * EPS))
    elif kernel == "linear":
        k = torch.where(same, 0.0, torch.where(same, 1.0, d2).sqrt())
    elif kernel == "squared":
        k = d2
    else:
        k = 1 / (1 + d2)
    return k / k.sum(1, keepdim=True)


def case(d, out, tokens, groups, kernel, scale):
    anchors, queue = values(B, tokens * d), values(Q, tokens * d)
    queue[3] = queue[7] = anchors[2]
    near = torch.stack([torch.randperm(Q, generator=gen)[: K - 1] for _ in range(B)])
    near[2, :2] = torch.tensor([3, 7])
    weight, bias = values(out, d).requires_grad_(), values(out).requires_grad_()
    total = 0.0
    for a in range(B):
        x = torch.cat([anchors[a : a + 1], queue[near[a]]])
        y = F.linear(x.view(K, tokens, d), weight, bias).reshape(K, tokens * out)
        if groups:
            y = F.normalize(y.view(K, groups, -1), dim=-1, eps=1e-12).reshape(K, -1)
        total = total + (weights(x, kernel, scale) - weights(y, kernel, scale)).square().sum() / B
    total.backward()
    return {
        "anchors": array(anchors), "queue": array(queue), "index": array(near), "weight": array(weight), "bias": array(bias),
        "heads": array(torch.tensor([tokens, groups])), "loss": array(total),
        "dweight": array(weight.grad), "dbias": array(bias.grad),
    }


heads = {"sphere": (7, 5, 1, 1), "oblique": (4, 3, 3, 3), "euclid": (6, 4, 1, 0)}
cases = {
    f"{kernel}/{scale}/{name}": case(*head, kernel, scale)
    for name, head in heads.items()
    for kernel in ("heat", "linear", "squared", "inverse")
    for scale in ("unit", "relative", "none")
}
path = pathlib.Path("ops/geometric/testdata/geometric.json")
path.write_text(json.dumps(cases) + "\n")
