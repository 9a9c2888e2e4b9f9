"""Values for ops/geodesic/golden_test.go: contrast by geodesic scores and its gradients.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/geodesic.py

It writes ops/geodesic/testdata/geodesic.json. An independent implementation in float64 under
PyTorch's autograd, on whole matrices: the pool is the queue with the batch written into
it, every path is made explicit, and the four gradient modes follow from where tensors
are detached or replaced (GeoMM, Eq. 3; gradient modes of the project's fact sheet 2.5.3).
Targets are those of ALBEF's momentum distillation, the teacher's scores geodesic too.
Last run with torch 2.15.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

gen = torch.Generator().manual_seed(12)
B, N, K, C = 5, 23, 6, 8
POINTER, TAU, ALPHA, LIMIT, SOFTNESS = 20, 0.1, 0.4, 4 * math.pi, 0.05


def unit(*shape):
    """Unit rows, then rounded to float32, which both sides read."""
    return F.normalize(torch.randn(*shape, generator=gen), dim=-1).float().double()


def angle(cosine):
    return torch.arccos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))


queue, keys, teacher, centres = unit(N, C), unit(B, C), unit(B, C), unit(K, C)
features = F.normalize(keys + 0.7 * unit(B, C), dim=-1).float().double()
where = (POINTER + torch.arange(B)) % N
pool = queue.clone()
pool[where] = keys
owner = (pool @ centres.T).argmax(1)
reach = angle((pool * centres[owner]).sum(1)).float().double()

# A graph of two components: the last centre has no path to the others.
edges = angle(centres @ centres.T).masked_fill(torch.rand(K, K, generator=gen) < 0.4, math.inf)
edges = torch.minimum(edges, edges.T)
edges[-1, :], edges[:, -1] = math.inf, math.inf
edges.fill_diagonal_(0)
for k in range(K):
    edges = torch.minimum(edges, edges[:, k : k + 1] + edges[k : k + 1, :])
paths = edges.float().double()


def scores(x, mode):
    """cos(min(theta, limit) * pi / limit) of rows x and the pool, (B, N)."""
    to_centres = x @ centres.T
    if "soft_entry" in mode:
        near = to_centres.topk(3, dim=1).indices
        legs = angle(to_centres.gather(1, near))[:, :, None] + paths[near]  # (B, M, K)
        legs = legs.clamp(max=1e3)  # autograd makes NaN of the soft minimum of infinities
        theta = -SOFTNESS * torch.logsumexp(-legs / SOFTNESS, dim=1)
    else:
        n = to_centres.argmax(1)
        theta = angle(to_centres.gather(1, n[:, None])) + paths[n]
    theta = theta[:, owner] + reach
    direct = angle(x @ pool.T)
    if "same_cluster" in mode:
        same = to_centres.argmax(1)[:, None] == owner[None, :]
        theta = torch.where(same, direct, theta)
    if "positives" in mode:
        own = torch.zeros(B, N, dtype=torch.bool)
        own[torch.arange(B), where] = True
        theta = torch.where(own & (direct < theta), direct, theta)
    theta = theta.masked_fill(theta >= LIMIT, LIMIT)  # cuts the gradient as well
    s = torch.cos(theta * math.pi / LIMIT)
    if "straight_through" in mode:
        cosine = x @ pool.T
        s = (s - cosine).detach() + cosine
    return s


def case(mode, distil):
    x = features.clone().requires_grad_()
    s = scores(x, mode)
    s.retain_grad()
    target = F.one_hot(where, N).double()
    if distil:
        with torch.no_grad():
            target = (1 - ALPHA) * target + ALPHA * F.softmax(scores(teacher, mode) / TAU, dim=1)
    loss = -(target * F.log_softmax(s / TAU, dim=1)).sum(1).mean()
    loss.backward()
    return {"scores": s.detach(), "loss": loss.detach(), "grad": x.grad}


def array(x, digits=9):
    values = x.flatten().tolist()
    if x.dtype == torch.float64:
        assert not any(map(math.isnan, values))
        values = [float(f"{v:.{digits}g}") if math.isfinite(v) else 1e30 for v in values]  # 1e30: no path
    return {"shape": list(x.shape), "data": values}


shared = {"f": features, "keys": keys, "teacher": teacher, "queue": queue, "centres": centres, "paths": paths,
          "owner": owner, "reach": reach, "labels": where}
cases = {"shared": shared}
for mode in ("strict", "same_cluster", "straight_through", "soft_entry", "same_cluster+straight_through",
             "same_cluster+soft_entry", "strict+positives", "same_cluster+soft_entry+positives"):
    cases[mode] = case(mode, False)
    cases[mode + " with teacher"] = case(mode, True)

data = {name: {k: array(v) for k, v in c.items()} for name, c in cases.items()}
out = pathlib.Path("ops/geodesic/testdata/geodesic.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items()) + "\n}\n")
