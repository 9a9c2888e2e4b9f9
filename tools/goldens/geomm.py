"""Golden training steps of a tiny ALBEF with geodesic contrast for
model/geodesic_golden_test.go.

Weights, queue and batch are those of albef.py, read from the files that it wrote; the
graphs over the queue are made up here and given as data. The step is computed in float64,
and geodesic scores are written out pair by pair of entries (Mei et al., eq. 3 and their
angle normalisation, with the ways of the gradient that docs/geomm.md names).

Run with a Python that has torch and safetensors, from the root of the repository:

    python tools/goldens/geomm.py

Writes model/testdata/geomm_{pair,id}.safetensors. Last run with torch 2.15.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from albef import ALPHA, B, C, L, Q, VOCAB, Model, sample, soft_ce

K, USED, POINTER, LIMIT, EDGE = 5, 4, 6, 4 * math.pi, 1e-6


def angle(cos):
    return cos.clamp(-1 + EDGE, 1 - EDGE).acos()


class Graph:
    """USED of K centres; a pair of them has no path."""

    def __init__(self, gen, queue, keys):
        near = F.normalize(keys.mean(0) + 0.1 * torch.randn(C, generator=gen).double(), dim=-1)
        self.centres = torch.zeros(K, C, dtype=torch.double)
        self.centres[:USED] = torch.stack([queue[2], near, queue[4], queue[5]]).float()
        d = 0.5 + 2 * torch.rand(K, K, generator=gen).double()
        d = ((d + d.T) / 2).float().double()
        d[0, 3] = d[3, 0] = math.inf
        d[USED:], d[:, USED:] = math.inf, math.inf
        d.fill_diagonal_(0)
        self.paths = d
        self.owner, self.reach = self.nearest(queue)
        self.reach = self.reach.float().double()

    def nearest(self, x):
        cos, owner = (x @ self.centres[:USED].T).max(-1)
        return owner, angle(cos)

    def enter(self, keys):
        """Owners and reaches of the pool that the batch has entered."""
        at = (POINTER + torch.arange(B)) % Q
        owner, reach = self.owner.clone(), self.reach.clone()
        owner[at], reach[at] = self.nearest(keys)
        return owner, reach


def scores(f, pool, graph, owner, reach, positive, mode):
    cos = f @ pool.T
    near = f @ graph.centres[:USED].T
    top = near.topk(mode["entries"], dim=-1).indices
    d = angle(near).gather(1, top)[:, :, None] + graph.paths[top]  # (B, M, K)
    if mode["entries"] == 1:
        d = d[:, 0]
    else:
        d = -mode["softness"] * torch.logsumexp(-d[:, :, :USED] / mode["softness"], dim=1)
    theta = d[:, owner] + reach
    own = near.argmax(-1)
    if mode["same"]:
        theta = torch.where(own[:, None] == owner[None], angle(cos), theta)
    if mode["direct"]:
        theta = torch.where(positive, torch.minimum(theta, angle(cos)), theta)
    s = (theta.clamp(max=LIMIT) * math.pi / LIMIT).cos()
    if mode["straight"]:
        s = (s - cos).detach() + cos
    return s


def main(name, mode):
    gen = torch.Generator().manual_seed(21)
    x = load_file(f"model/testdata/albef_{name}.safetensors")
    double = lambda k: x[k].double()
    online = {k[6:]: double(k).requires_grad_() for k in x if k.startswith("param/")}
    twin = {k[9:]: double(k) for k in x if k.startswith("momentum/")}
    for k in online:  # what has no twin is the teacher's too
        twin.setdefault(k, online[k].detach())
    on, mo = Model(online), Model(twin)
    images, tokens, masked = double("input/images"), x["input/tokens"].long(), x["input/masked"].long()
    mask = (torch.arange(L)[None] < x["input/lengths"][:, None]).double()
    tokens, masked = tokens.view(B, L), masked.view(B, L)
    ids, qids = x["input/ids"].long(), x["input/queue_ids"].long()
    real = x["input/mask_labels"] >= 0
    places, labels = x["input/mask_places"].long()[real], x["input/mask_labels"].long()[real]
    noise = torch.stack([double("input/noise_i2t"), double("input/noise_t2i")])

    image, text = on.image(images), on.text(tokens, mask)
    fi, ft = on.project("image_proj", image), on.project("text_proj", text)
    with torch.no_grad():
        image_m, text_m = mo.image(images), mo.text(tokens, mask)
        fim, ftm = mo.project("image_proj", image_m), mo.project("text_proj", text_m)
        at = (POINTER + torch.arange(B)) % Q
        pools, graphs = {}, {}
        for m, keys in (("image", fim), ("text", ftm)):
            queue = double(f"input/{m}_queue")
            pools[m] = queue.clone()
            pools[m][at] = keys
            graphs[m] = Graph(gen, queue, keys)
        if name == "id":
            columns = qids.clone()
            columns[at] = ids
            positive = ids[:, None] == columns[None, :]
        else:
            positive = torch.zeros(B, Q, dtype=torch.bool)
            positive[torch.arange(B), at] = True
        hard = positive.double() / positive.sum(1, keepdim=True)
    tau = online["temperature"]

    def direction(f, fm, m):
        keys = fim if m == "image" else ftm
        owner, reach = graphs[m].enter(keys)
        s = scores(f, pools[m], graphs[m], owner, reach, positive, mode) / tau
        with torch.no_grad():
            t = scores(fm, pools[m], graphs[m], owner, reach, positive, mode) / tau
            y = ALPHA * t.softmax(-1) + (1 - ALPHA) * hard
        return s, t, soft_ce(s, y)

    i2t, i2t_m, loss_i = direction(fi, fim, "text")
    t2i, t2i_m, loss_t = direction(ft, ftm, "image")
    itc = (loss_i + loss_t) / 2
    in_batch = fi @ ft.T / tau
    same = ids[:, None] == ids[None, :] if name == "id" else torch.eye(B, dtype=torch.bool)
    hard_b = same.double() / same.sum(1, keepdim=True)
    itc_b = (soft_ce(in_batch, hard_b) + soft_ce(in_batch.T, hard_b)) / 2

    with torch.no_grad():
        by_id = ids if name == "id" else None
        by_text, by_image = (i2t_m, t2i_m) if mode["negatives"] == "geodesic" else (i2t, t2i)
        neg_text, neg_image = sample(by_text[:, at], noise[0], by_id), sample(by_image[:, at], noise[1], by_id)
    pos = on.fusion(text, mask, image)
    neg1 = on.fusion(text, mask, image[neg_image])
    neg2 = on.fusion(text[neg_text], mask[neg_text], image)
    cls = torch.cat([pos[:, 0], neg1[:, 0], neg2[:, 0]])
    itm = F.cross_entropy(on.lin("itm_head", cls), torch.tensor([1] * B + [0] * 2 * B))
    logits = on.mlm(on.fusion(on.text(masked, mask), mask, image)).reshape(B * L, VOCAB)[places]
    with torch.no_grad():
        soft = mo.mlm(mo.fusion(mo.text(masked, mask), mask, image_m)).reshape(B * L, VOCAB)[places].softmax(-1)
    mlm = (1 - ALPHA) * F.cross_entropy(logits, labels) + ALPHA * soft_ce(logits, soft)
    loss = itc + 0.5 * itc_b + itm + mlm
    loss.backward()

    out = {"expect/loss": loss, "expect/itc": itc, "expect/itc_in_batch": itc_b, "expect/itm": itm, "expect/mlm": mlm}
    print(name, {k: round(v.item(), 6) for k, v in out.items()})
    for m, g in graphs.items():
        print(" ", m, "owners", g.owner.tolist(), "of the batch", g.nearest(fim if m == "image" else ftm)[0].tolist())
        out |= {f"{m}/centres": g.centres, f"{m}/paths": g.paths, f"{m}/reach": g.reach, f"{m}/owner": g.owner.to(torch.int32)}
    for k, v in online.items():
        out["grad/" + k] = torch.zeros_like(v) if v.grad is None else v.grad
    for k, v in out.items():
        v = v.detach().clone().contiguous()
        out[k] = v.float() if v.is_floating_point() else v
    save_file(out, f"model/testdata/geomm_{name}.safetensors")


if __name__ == "__main__":
    main("pair", {"entries": 1, "softness": 0, "same": True, "straight": True, "direct": False, "negatives": "score"})
    main("id", {"entries": 3, "softness": 0.1, "same": False, "straight": False, "direct": True, "negatives": "geodesic"})
