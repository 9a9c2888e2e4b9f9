"""Values for the terms of triple contrastive learning (TCL).

Run with a Python that has torch and safetensors, from the root of the repository:

    python tools/goldens/tcl.py

It writes ops/contrast/testdata/local.json for ops/contrast/local_test.go and a training step of a tiny model
for model/tcl_test.go, model/testdata/tcl_{pair,id}.safetensors. The local term is written
as in TCL's code: a softmax over one positive and the parts of all other samples for
every part, with 10000 added to what is masked. The model is that of albef.py. Last run
with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from albef import B, C, FILLED, L, PATCH, Q, SIZE, VOCAB, ALPHA, M, Model, random_params, sample, soft_ce


def rand(gen, *shape):
    """Multiples of 1/64 in [-2, 2): exact in float32 and short in JSON."""
    return torch.randint(-128, 128, shape, generator=gen).double() / 64


def array(x):
    x = x.detach()
    values = x.flatten().tolist()
    if x.dtype == torch.float64:
        values = [float(f"{v:.9g}") for v in values]
    return {"shape": list(x.shape), "data": values}


def local_loss(s, mask, ids=None):
    """s (B, B, P): whole i against part p of sample j; mask (B, P) of parts that exist."""
    b, _, p = s.shape
    own = torch.stack([s[i, i] for i in range(b)])  # (B, P)
    own = mask * own + 10000.0 * (1 - mask)
    same = torch.eye(b, dtype=s.dtype) if ids is None else (ids[:, None] == ids[None]).to(s.dtype)
    other = 1 - same[:, :, None]
    neg = (other * s) - 10000.0 * (1 - other)
    neg = mask[None] * neg - 10000.0 * (1 - mask[None])
    neg = neg.reshape(b, 1, b * p).expand(b, p, b * p)
    row = -F.log_softmax(torch.cat([own[:, :, None], neg], 2), 2)[:, :, 0]  # (B, P)
    return (row.sum(1) / mask.sum(1)).mean()


def local_case(gen, b, p, lengths=None, first=0):
    s = (2 * rand(gen, b, b * p)).requires_grad_()
    mask = torch.ones(b, p, dtype=torch.double)
    case = {"logits": s}
    if lengths is not None:
        for j, n in enumerate(lengths):
            mask[j, n:] = 0
        case["lengths"] = torch.tensor(lengths)
    mask[:, :first] = 0
    loss = local_loss(s.view(b, b, p), mask)
    loss.backward()
    return case | {"out": loss, "dlogits": s.grad}


def pool_case(gen, n, side, grid, c):
    x = rand(gen, n, 1 + side * side, c).requires_grad_()
    patches = x[:, 1:].transpose(1, 2).reshape(n, c, side, side)
    y = F.avg_pool2d(patches, side // grid).flatten(2).transpose(1, 2).reshape(-1, c)
    dy = rand(gen, *y.shape)
    (y * dy).sum().backward()
    return {"x": x.reshape(-1, c), "out": y, "dy": dy, "dx": x.grad.reshape(-1, c)}


def ops():
    gen = torch.Generator().manual_seed(21)
    cases = {
        "image parts": local_case(gen, 4, 4),
        "tokens of texts": local_case(gen, 5, 6, [6, 2, 4, 3, 5], 1),
        "pool 4x4 into 2x2": pool_case(gen, 3, 4, 2, 5),
        "pool 6x6 into 3x3": pool_case(gen, 2, 6, 3, 3),
        "pool 2x2 into 1": pool_case(gen, 2, 2, 1, 3),
    }
    data = {name: {k: array(v) for k, v in case.items()} for name, case in cases.items()}
    out = pathlib.Path("ops/contrast/testdata/local.json")
    out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items()) + "\n}\n")


def step(mode, grid):
    """One step of contrast with all six terms, matching and masked language modelling."""
    gen = torch.Generator().manual_seed(31 if mode == "pair" else 32)
    online = {k: v.requires_grad_() for k, v in random_params(gen).items()}
    twin = random_params(gen)
    on, mo = Model(online), Model(twin)
    images, views = torch.randn(2, B, 3, SIZE, SIZE, generator=gen)
    lengths = torch.tensor([6, 4, 1, 5])
    mask = (torch.arange(L)[None] < lengths[:, None]).float()
    tokens = torch.randint(5, VOCAB, (B, L), generator=gen) * mask.long()
    tokens[:, 0] = 2
    ids = torch.tensor([7, 3, 7, 9]) if mode == "id" else torch.tensor([0, 1, 2, 3])
    places = torch.tensor([0 * L + 2, 0 * L + 5, 1 * L + 1, 3 * L + 4])
    labels = tokens.flatten()[places]
    masked = tokens.clone().flatten()
    masked[places] = 4
    masked = masked.view(B, L)
    noise = -torch.log(-torch.log(torch.rand(2, B, B, generator=gen)))
    qi = F.normalize(torch.randn(Q, C, generator=gen), dim=-1)
    qt = F.normalize(torch.randn(Q, C, generator=gen), dim=-1)
    qids = torch.tensor([3, 9, -100, 7, 5, -100, -100, -100]) if mode == "id" else torch.full((Q,), -100)

    image, text = on.image(images), on.text(tokens, mask)
    fi, ft = on.project("image_proj", image), on.project("text_proj", text)
    with torch.no_grad():
        image_m, text_m = mo.image(views), mo.text(tokens, mask)
        fim, ftm = mo.project("image_proj", image_m), mo.project("text_proj", text_m)
        bank_t, bank_i = torch.cat([ftm, qt[:FILLED]]), torch.cat([fim, qi[:FILLED]])
        side = SIZE // PATCH
        parts = F.normalize(mo.lin("image_proj", image_m[:, 1:]), dim=-1).transpose(1, 2).reshape(B, C, side, side)
        parts = F.adaptive_avg_pool2d(parts, grid).flatten(2).transpose(1, 2)  # (B, grid*grid, C)
        words = F.normalize(mo.lin("text_proj", text_m[:, 1:]), dim=-1)  # (B, L-1, C)
        if mode == "id":
            pos = (ids[:, None] == torch.cat([ids, qids[:FILLED]])[None, :]).float()
            hard = pos / pos.sum(1, keepdim=True)
        else:
            hard = torch.eye(B, B + FILLED)
    tau = online["temperature"]
    i2t, t2i = fi @ bank_t.T / tau, ft @ bank_i.T / tau
    with torch.no_grad():
        y_i2t = ALPHA * (fim @ bank_t.T / tau).softmax(-1) + (1 - ALPHA) * hard
        y_t2i = ALPHA * (ftm @ bank_i.T / tau).softmax(-1) + (1 - ALPHA) * hard
    same = ids if mode == "id" else None
    i2i, t2t = soft_ce(fi @ bank_i.T / tau, hard), soft_ce(ft @ bank_t.T / tau, hard)
    local_i = local_loss(torch.einsum("ic,jpc->ijp", fi, parts) / tau, torch.ones(B, grid * grid), same)
    s = torch.einsum("ic,jpc->ijp", ft, words) / tau
    keep = lengths > 1  # a text of its class token alone has no part
    row = [local_row(s, i, mask[:, 1:], same) for i in range(B) if keep[i]]
    local_t = torch.stack(row).mean()
    itc = (soft_ce(i2t, y_i2t) + soft_ce(t2i, y_t2i) + i2i + t2t + local_i + local_t) / 6

    with torch.no_grad():
        neg_text, neg_image = sample(i2t, noise[0], same), sample(t2i, noise[1], same)
    cls = torch.cat([
        on.fusion(text, mask, image)[:, 0], on.fusion(text, mask, image[neg_image])[:, 0],
        on.fusion(text[neg_text], mask[neg_text], image)[:, 0],
    ])
    itm = F.cross_entropy(on.lin("itm_head", cls), torch.tensor([1] * B + [0] * 2 * B))
    logits = on.mlm(on.fusion(on.text(masked, mask), mask, image)).reshape(B * L, VOCAB)[places]
    with torch.no_grad():
        soft = mo.mlm(mo.fusion(mo.text(masked, mask), mask, image_m)).reshape(B * L, VOCAB)[places].softmax(-1)
    mlm = (1 - ALPHA) * F.cross_entropy(logits, labels) + ALPHA * soft_ce(logits, soft)
    loss = itc + itm + mlm
    loss.backward()

    pad = M - len(places)
    i32 = lambda x: x.to(torch.int32).contiguous()
    out = {
        "input/images": images, "input/views": views, "input/tokens": i32(tokens), "input/lengths": i32(lengths), "input/ids": i32(ids),
        "input/masked": i32(masked), "input/mask_places": i32(F.pad(places, (0, pad))),
        "input/mask_labels": i32(F.pad(labels, (0, pad), value=-100)),
        "input/noise_i2t": noise[0], "input/noise_t2i": noise[1],
        "input/image_queue": qi, "input/text_queue": qt, "input/queue_ids": i32(qids),
        "expect/loss": loss.detach(), "expect/itc": itc.detach(), "expect/itm": itm.detach(), "expect/mlm": mlm.detach(),
        "expect/itc_i2i": i2i.detach(), "expect/itc_t2t": t2t.detach(),
        "expect/itc_local_image": local_i.detach(), "expect/itc_local_text": local_t.detach(),
    }
    for k, v in online.items():
        out["param/" + k] = v.detach()
        out["grad/" + k] = torch.zeros_like(v) if v.grad is None else v.grad
        if k.split("/")[0] in ("image", "text", "image_proj", "text_proj"):
            out["momentum/" + k] = twin[k]
    save_file({k: v.clone().contiguous() for k, v in out.items()}, f"model/testdata/tcl_{mode}.safetensors")
    print(mode, {k: float(v) for k, v in out.items() if k.startswith("expect/")})


def local_row(s, i, mask, ids):
    """The mean loss of the parts of sample i, one softmax at a time."""
    others = [j for j in range(B) if j != i and (ids is None or ids[j] != ids[i])]
    neg = torch.cat([s[i, j][mask[j] > 0] for j in others])
    parts = [F.log_softmax(torch.cat([p[None], neg]), 0)[0] for p in s[i, i][mask[i] > 0]]
    return -torch.stack(parts).mean()


if __name__ == "__main__":
    ops()
    step("pair", 1)
    step("id", 2)
