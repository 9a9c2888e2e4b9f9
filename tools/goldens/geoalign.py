"""Golden training steps of the combined objective on a tiny ALBEF for
model/geoalign_golden_test.go.

Batch, queue ids and the weights whose shape does not depend on the head are those of
albef.py, read from the file that it wrote; the others, the features in the queue and the
graphs over it are made up here and given as data. The step is computed in float64, in the
manner of the papers: every class token is a token of its sequence, scores are written out
pair by pair (Mei et al., eq. 3 on a product of spheres; x^T (W o U) y of GSSF), and the
geometric term of GeRA anchor by anchor.

Run with a Python that has torch and safetensors, from the root of the repository:

    python tools/goldens/geoalign.py

Writes model/testdata/geoalign_{multi,early,oblique,euclid,tokenblocks,paths}.safetensors.
Last run with torch 2.15.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from albef import ALPHA, B, C, DEPTH, L, LAYERS, Q, VOCAB, WI, WT, Model, sample, soft_ce

K, USED, EDGE = 5, 4, 1e-6
ENTRIES, SOFTNESS, LIMIT_PI = 3, 0.1, 4
NEIGHBOURS, POOL, EPSILON = 3, 2, 0.8


class Towers(Model):
    """ALBEF with m class tokens in both towers, those after the first one in the last
    `late` blocks alone."""

    def __init__(self, p, case):
        super().__init__(p)
        self.m, self.late, self.spheres = case.get("tokens", 1), case.get("blocks", 0), case.get("spheres", 1)
        self.euclid = case.get("euclid", False)

    def enter(self, i, depth, x, further):
        """Lets the further class tokens enter behind the first one before block i."""
        if self.m > 1 and i == (depth - self.late if self.late else 0):
            return torch.cat([x[:, :1], further, x[:, 1:]], 1), True
        return x, False

    def image(self, x):
        n, patch = x.shape[0], 8
        w = self.p["image/patch_embed/weight"].view(WI, 3, patch, patch)
        x = F.conv2d(x, w, self.p["image/patch_embed/bias"], stride=patch).flatten(2).transpose(1, 2)
        x = torch.cat([self.p["image/cls_token"].view(1, self.m, WI).expand(n, -1, -1), x], 1) + self.p["image/pos_embed"]
        further, x = x[:, 1 : self.m], torch.cat([x[:, :1], x[:, self.m :]], 1)
        for i in range(DEPTH):
            x, _ = self.enter(i, DEPTH, x, further)
            p = f"image/blocks/{i:02d}"
            q, k, v = self.lin(p + "/attn/qkv", self.norm(p + "/norm1", x, 1e-6)).chunk(3, -1)
            x = x + self.lin(p + "/attn/proj", self.attend(q, k, v, None))
            x = x + self.lin(p + "/mlp/fc2", F.gelu(self.lin(p + "/mlp/fc1", self.norm(p + "/norm2", x, 1e-6))))
        return self.split(self.norm("image/norm", x, 1e-6))

    def split(self, x):
        """The tokens with one class token, and all class tokens (B, m*D)."""
        return torch.cat([x[:, :1], x[:, self.m :]], 1), x[:, : self.m].flatten(1)

    def embed(self, ids, positions):
        x = self.p["text/embeddings/word/weight"][ids] + self.p["text/embeddings/token_type/weight"][0]
        return self.norm("text/embeddings/norm", x + self.p["text/embeddings/position/weight"][positions], 1e-12)

    def text(self, ids, mask):
        x = self.embed(ids, [0] + list(range(self.m, L + self.m - 1)))
        further = self.embed(ids[:, :1].expand(-1, self.m - 1), list(range(1, self.m))) if self.m > 1 else None
        for i in range(LAYERS):
            x, entered = self.enter(i, LAYERS, x, further)
            if entered:
                mask = torch.cat([torch.ones(len(ids), self.m - 1).double(), mask], 1)
            x = self.bert_block(i, x, mask)
        return self.split(x)

    def masked(self, ids, mask):
        """Captions of which nothing but words is read have one class token, and words
        have the positions that they have elsewhere."""
        x = self.embed(ids, [0] + list(range(self.m, L + self.m - 1)))
        for i in range(LAYERS):
            x = self.bert_block(i, x, mask)
        return x

    def head(self, name, classes):
        """Features (N, C) of class tokens (N, m*D)."""
        y = self.lin(name, classes.view(len(classes), self.m, -1)).flatten(1)
        if self.euclid:
            return y
        return F.normalize(y.view(len(y), self.spheres, -1), dim=-1).flatten(1)


def local(x, y, spheres):
    """Distances on a product of spheres, (N, M)."""
    cos = torch.einsum("nkc,mkc->nmk", x.view(len(x), spheres, -1), y.view(len(y), spheres, -1))
    return cos.clamp(-1 + EDGE, 1 - EDGE).acos().square().sum(-1).sqrt()


class Graph:
    """USED of K centres; a pair of them has no path. With count 0 there is none yet."""

    def __init__(self, gen, queue, keys, pointer, case):
        s = case["spheres"]
        noise = 0.1 * torch.randn(C, generator=gen).double()
        near = F.normalize((keys.mean(0) + noise).view(s, -1), dim=-1).flatten()
        self.centres = torch.zeros(K, C, dtype=torch.double)
        self.centres[:USED] = torch.stack([queue[2], near, queue[4], queue[5]]).float()
        d = 0.5 + 2 * torch.rand(K, K, generator=gen).double()
        d = ((d + d.T) / 2).float().double()
        d[0, 3] = d[3, 0] = math.inf
        d[USED:], d[:, USED:] = math.inf, math.inf
        d.fill_diagonal_(0)
        self.paths, self.spheres, self.count = d, s, case.get("count", USED)
        self.at = (pointer + torch.arange(B)) % Q
        self.owner, self.reach = self.nearest(queue)
        self.reach = self.reach.float().double()

    def nearest(self, x):
        owner = (x @ self.centres[:USED].T).argmax(-1)
        return owner, local(x, self.centres, self.spheres).gather(1, owner[:, None])[:, 0]

    def scores(self, f, pool, keys, positive, case):
        s = self.spheres
        mean = f @ pool.T / s
        if self.count == 0:
            return mean
        owner, reach = self.owner.clone(), self.reach.clone()
        owner[self.at], reach[self.at] = self.nearest(keys)
        near = f @ self.centres[:USED].T
        top = near.topk(ENTRIES, dim=-1).indices
        d = local(f, self.centres[:USED], s).gather(1, top)[:, :, None] + self.paths[top][:, :, :USED]  # (B, M, USED)
        d = -SOFTNESS * torch.logsumexp(-d / SOFTNESS, dim=1)
        theta = d[:, owner] + reach
        direct = local(f, pool, s)
        own = near.argmax(-1)
        theta = torch.where(own[:, None] == owner[None], direct, theta)
        if case.get("direct"):
            theta = torch.where(positive, torch.minimum(theta, direct), theta)
        limit = LIMIT_PI * math.pi * math.sqrt(s)
        x = (theta.clamp(max=limit) * math.pi / limit).cos()
        if case.get("straight", True):
            x = (x - mean).detach() + mean
        return x


def metric(p, form):
    """W o U as a matrix (C, C)."""
    w = p["gssf/weight"]
    if form == "diag":
        return torch.diag(w)
    if form == "block_diag":
        return torch.block_diag(*w)
    return w


def pair_scores(terms, x, y, p, case):
    """Scores of images x (N, C) and texts y (M, C) without the graph, (N, M)."""
    total = 0
    for kind, weight in terms.items():
        if kind == "gssf":
            s = x @ metric(p, case["form"]) @ y.T
        elif kind == "angle":
            s = -local(x, y, case["spheres"])
        elif kind == "inner":
            s = x @ y.T
        elif kind == "l2":
            s = -(x[:, None] - y[None]).square().sum(-1).sqrt()
        else:
            continue
        total = total + weight * s
    return total


def weights(x, kernel, scale):
    """Kernel matrix (K, K) of points, each row divided by its sum."""
    if scale == "unit":
        x = F.normalize(x, dim=-1)
    d2 = (x[:, None] - x[None]).square().sum(-1)
    n = len(x)
    if scale == "relative":
        d2 = d2 / (d2.sum() / (n * (n - 1)))
    k = {"heat": lambda: (-d2 / (4 * EPSILON)).exp(), "inverse": lambda: 1 / (1 + d2), "squared": lambda: d2}[kernel]()
    return k / k.sum(1, keepdim=True)


def geometric(name, anchors, queue, filled, noise, on, case):
    kernel, scale, sampling = case["geometric"][1:]
    near = POOL * NEIGHBOURS
    cos = F.normalize(anchors, dim=-1) @ F.normalize(queue[:filled], dim=-1).T
    total = 0
    for a in range(B):
        values, order = cos[a].topk(near)
        gaps = list((values[:-1] - values[1:])) + list((values[-1:] - cos[a].sort().values[filled - near - 1 : filled - near]) if filled > near else [])
        assert min(gaps) > 1e-5, "a tie of neighbours"
        rank = torch.arange(near).double()
        key = {"biased": lambda: -(1 + rank).log() - (-noise[a].log()).log(), "uniform": lambda: noise[a], "closest": lambda: -rank}[sampling]()
        rows = order[key.topk(NEIGHBOURS - 1).indices]
        x = torch.cat([anchors[a : a + 1], queue[rows]])
        y = on.head(name, x)
        total = total + (weights(x, kernel, scale) - weights(y, kernel, scale)).square().sum() / B
    return total


def new_weights(gen, x, case):
    """Weights and twins, those of albef.py where the shape is the same."""
    m = case.get("tokens", 1)
    shapes = {"image/cls_token": (m, WI), "image/pos_embed": (m + 4, WI)} if m > 1 else {}
    out = C // m
    shapes |= {"image_proj/weight": (out, WI), "image_proj/bias": (out,), "text_proj/weight": (out, WT), "text_proj/bias": (out,)}
    changed = {}
    for prefix in ("param/", "momentum/"):
        for k, s in shapes.items():
            changed[prefix + k] = (0.6 if "proj" in k else 0.3) * torch.randn(s, generator=gen)
        if case.get("form"):
            one = {"diag": torch.ones(C), "block_diag": torch.eye(4).repeat(2, 1, 1), "dense": torch.eye(C)}[case["form"]]
            changed[prefix + "gssf/weight"] = one + 0.2 * torch.randn(one.shape, generator=gen)
    if case.get("log"):
        changed["param/logit_scale"] = torch.tensor(1.7)
    params = {k[6:]: v for k, v in (x | changed).items() if k.startswith("param/")}
    twins = {k[9:]: v for k, v in (x | changed).items() if k.startswith("momentum/")}
    if case.get("log"):
        del params["temperature"]
    return params, twins, changed


def main(name, case):
    gen = torch.Generator().manual_seed(case["seed"])
    ids_mode = case.get("positives", "pair")
    x = load_file(f"model/testdata/albef_{ids_mode}.safetensors")
    params, twins, given = new_weights(gen, x, case)
    online = {k: v.double().requires_grad_() for k, v in params.items()}
    twin = {k: v.double() for k, v in twins.items()}
    for k in online:  # what has no twin is the teacher's too
        twin.setdefault(k, online[k].detach())
    on, mo = Towers(online, case), Towers(twin, case)
    images, tokens, masked = x["input/images"].double(), x["input/tokens"].long().view(B, L), x["input/masked"].long().view(B, L)
    mask = (torch.arange(L)[None] < x["input/lengths"][:, None]).double()
    ids, qids = x["input/ids"].long(), x["input/queue_ids"].long()
    real = x["input/mask_labels"] >= 0
    places, labels = x["input/mask_places"].long()[real], x["input/mask_labels"].long()[real]
    noise = torch.stack([x["input/noise_i2t"].double(), x["input/noise_t2i"].double()])
    filled, pointer = case["filled"], case["pointer"]

    (image, image_classes), (text, text_classes) = on.image(images), on.text(tokens, mask)
    fi, ft = on.head("image_proj", image_classes), on.head("text_proj", text_classes)
    with torch.no_grad():
        (image_m, image_classes_m), (text_m, text_classes_m) = mo.image(images), mo.text(tokens, mask)
        fim, ftm = mo.head("image_proj", image_classes_m), mo.head("text_proj", text_classes_m)

    def ring(keys):
        r = torch.randn(Q, C, generator=gen)
        if not case.get("euclid"):
            r = F.normalize(r.view(Q, case["spheres"], -1) + (0.3 * keys.float().mean(0)).view(case["spheres"], -1), dim=-1).flatten(1)
        return r

    given["image_queue"], given["text_queue"] = ring(fim), ring(ftm)
    queues = {"image": given["image_queue"].double(), "text": given["text_queue"].double()}
    terms, graphs = case["terms"], {}
    pooled = "geodesic" in terms
    if pooled:
        at = (pointer + torch.arange(B)) % Q
        pools = {m: queues[m].clone() for m in queues}
        pools["image"][at], pools["text"][at] = fim, ftm
        for m, keys in (("image", fim), ("text", ftm)):
            graphs[m] = Graph(gen, queues[m], keys, pointer, case)
        columns = qids.clone()
        columns[at] = ids
        positive = torch.zeros(B, Q, dtype=torch.bool)
    else:
        at = torch.arange(B)
        pools = {"image": torch.cat([fim, queues["image"][:filled]]), "text": torch.cat([ftm, queues["text"][:filled]])}
        columns = torch.cat([ids, qids[:filled]])
        positive = torch.zeros(B, B + filled, dtype=torch.bool)
    positive[torch.arange(B), at] = True
    if ids_mode == "id":
        positive = ids[:, None] == columns[None, :]
    hard = positive.double() / positive.sum(1, keepdim=True)

    tau = (-online["logit_scale"]).exp() if case.get("log") else online["temperature"]

    def logits(terms, f, side, p):
        """Of features of one side, "image" or "text", with the pool of the other one."""
        other = "text" if side == "image" else "image"
        keys = ftm if other == "text" else fim
        if side == "image":
            s = pair_scores(terms, f, pools[other], p, case)
        else:
            s = pair_scores(terms, pools[other], f, p, case)
            s = s.T if torch.is_tensor(s) else s
        if "geodesic" in terms:
            s = s + terms["geodesic"] * graphs[other].scores(f, pools[other], keys, positive, case)
        return s / tau

    def direction(f, fm, side):
        s = logits(terms, f, side, online)
        with torch.no_grad():
            t = logits(case.get("target", terms), fm, side, twin)
            y = ALPHA * t.softmax(-1) + (1 - ALPHA) * hard
        return s, soft_ce(s, y)

    i2t, loss_i = direction(fi, fim, "image")
    t2i, loss_t = direction(ft, ftm, "text")
    itc = (loss_i + loss_t) / 2
    in_batch_terms = {k: v for k, v in terms.items() if k != "geodesic"}
    if not in_batch_terms:
        in_batch_terms = {"inner": 1}
    in_batch = pair_scores(in_batch_terms, fi, ft, online, case) / tau
    same = ids[:, None] == ids[None, :] if ids_mode == "id" else torch.eye(B, dtype=torch.bool)
    hard_b = same.double() / same.sum(1, keepdim=True)
    itc_b = (soft_ce(in_batch, hard_b) + soft_ce(in_batch.T, hard_b)) / 2

    with torch.no_grad():
        by_id = ids if ids_mode == "id" else None
        by_text, by_image = i2t, t2i
        if kind := case.get("negatives"):
            from_teacher = kind == "geodesic"
            by_text = logits({kind: 1}, fim if from_teacher else fi, "image", online)
            by_image = logits({kind: 1}, ftm if from_teacher else ft, "text", online)
        neg_text, neg_image = sample(by_text[:, at], noise[0], by_id), sample(by_image[:, at], noise[1], by_id)
    pos = on.fusion(text, mask, image)
    neg1 = on.fusion(text, mask, image[neg_image])
    neg2 = on.fusion(text[neg_text], mask[neg_text], image)
    cls = torch.cat([pos[:, 0], neg1[:, 0], neg2[:, 0]])
    itm = F.cross_entropy(on.lin("itm_head", cls), torch.tensor([1] * B + [0] * 2 * B))
    predicted = on.mlm(on.fusion(on.masked(masked, mask), mask, image)).reshape(B * L, VOCAB)[places]
    with torch.no_grad():
        soft = mo.mlm(mo.fusion(mo.masked(masked, mask), mask, image_m)).reshape(B * L, VOCAB)[places].softmax(-1)
    mlm = (1 - ALPHA) * F.cross_entropy(predicted, labels) + ALPHA * soft_ce(predicted, soft)

    parts = {"itc": itc, "itc_in_batch": itc_b, "itm": itm, "mlm": mlm}
    loss = itc + 0.5 * itc_b + itm + mlm
    if g := case.get("geometric"):
        for m, anchors in (("image", image_classes_m), ("text", text_classes_m)):
            if g[0] not in ("both", m):
                continue
            given[m + "_backbone"] = torch.randn(Q, anchors.shape[1], generator=gen)
            given[m + "_neighbours"] = torch.rand(B, POOL * NEIGHBOURS, generator=gen).clamp(1e-3, 1 - 1e-3)
            backbone, u = given[m + "_backbone"].double(), given[m + "_neighbours"].double()
            parts["geometric_" + m] = geometric(m + "_proj", anchors, backbone, filled, u, on, case)
            loss = loss + case["weight"] * parts["geometric_" + m]
    loss.backward()

    print(name, round(loss.item(), 6), {k: round(v.item(), 6) for k, v in parts.items()})
    out = given | {"expect/" + k: v for k, v in (parts | {"loss": loss}).items()}
    out |= {"expect/image_m": fim, "expect/text_m": ftm}
    for m, g in graphs.items():
        print(" ", m, "owners", g.owner.tolist(), "of the batch", g.nearest(fim if m == "image" else ftm)[0].tolist())
        out |= {f"{m}/centres": g.centres, f"{m}/paths": g.paths, f"{m}/reach": g.reach, f"{m}/owner": g.owner.to(torch.int32)}
    for k, v in online.items():
        out["grad/" + k] = torch.zeros_like(v) if v.grad is None else v.grad
    for k, v in out.items():
        v = v.detach().clone().contiguous()
        out[k] = v.float() if v.is_floating_point() else v
    save_file(out, f"model/testdata/geoalign_{name}.safetensors")


MULTI = {
    "seed": 31, "tokens": 2, "spheres": 2, "filled": 8, "pointer": 6, "form": "block_diag", "terms": {"gssf": 1, "geodesic": 0.5},
    "geometric": ("both", "heat", "unit", "biased"), "weight": 50,
}

if __name__ == "__main__":
    main("multi", MULTI)
    main("early", MULTI | {"count": 0})
    main("oblique", {
        "seed": 32, "spheres": 2, "filled": 7, "pointer": 7, "form": "diag", "terms": {"angle": 0.3, "gssf": 1}, "log": True,
        "geometric": ("image", "inverse", "relative", "closest"), "weight": 50,
    })
    main("euclid", {
        "seed": 33, "spheres": 1, "euclid": True, "filled": 5, "pointer": 5, "terms": {"l2": 1}, "target": {"inner": 1}, "negatives": "l2",
        "positives": "id",
    })
    main("tokenblocks", {
        "seed": 34, "tokens": 2, "blocks": 1, "spheres": 2, "filled": 8, "pointer": 2, "form": "dense", "terms": {"gssf": 1},
        "geometric": ("text", "squared", "none", "uniform"), "weight": 0.5,
    })
    main("paths", {
        "seed": 35, "spheres": 2, "filled": 8, "pointer": 3, "terms": {"geodesic": 1}, "straight": False, "direct": True,
        "negatives": "geodesic", "positives": "id",
    })
