"""Golden training step of a tiny ALBEF for model/golden_test.go.

An independent PyTorch implementation in the manner of the published code: separate
passes for positives, negatives and masked captions, additive masks, separate
query/key/value products, soft targets written out. It knows nothing of the Go
code but the names of parameters and inputs.

Run from the repository root:  python tools/goldens/albef.py
Writes model/testdata/albef_{pair,id}.safetensors.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

B, L, SIZE, PATCH, VOCAB, C, Q, FILLED, M = 4, 6, 16, 8, 40, 8, 8, 5, 8
WI, WT, HEADS, DEPTH, LAYERS, FUSION, POSITIONS = 16, 24, 2, 2, 2, 2, 10
T = (SIZE // PATCH) ** 2 + 1
ALPHA, TAU = 0.4, 0.07


def shapes():
    s = {}

    def lin(name, out, inp):
        s[name + "/weight"], s[name + "/bias"] = (out, inp), (out,)

    def norm(name, d):
        s[name + "/weight"], s[name + "/bias"] = (d,), (d,)

    lin("image/patch_embed", WI, 3 * PATCH * PATCH)
    s["image/cls_token"], s["image/pos_embed"] = (WI,), (T, WI)
    for i in range(DEPTH):
        p = f"image/blocks/{i:02d}"
        norm(p + "/norm1", WI)
        lin(p + "/attn/qkv", 3 * WI, WI)
        lin(p + "/attn/proj", WI, WI)
        norm(p + "/norm2", WI)
        lin(p + "/mlp/fc1", 4 * WI, WI)
        lin(p + "/mlp/fc2", WI, 4 * WI)
    norm("image/norm", WI)
    s["text/embeddings/word/weight"] = (VOCAB, WT)
    s["text/embeddings/token_type/weight"] = (2, WT)
    s["text/embeddings/position/weight"] = (POSITIONS, WT)
    norm("text/embeddings/norm", WT)
    for i in range(LAYERS + FUSION):
        p = f"text/layers/{i:02d}"
        lin(p + "/attention/qkv", 3 * WT, WT)
        lin(p + "/attention/output", WT, WT)
        norm(p + "/attention/norm", WT)
        if i >= LAYERS:
            lin(p + "/crossattention/query", WT, WT)
            lin(p + "/crossattention/kv", 2 * WT, WI)
            lin(p + "/crossattention/output", WT, WT)
            norm(p + "/crossattention/norm", WT)
        lin(p + "/ffn/intermediate", 4 * WT, WT)
        lin(p + "/ffn/output", WT, 4 * WT)
        norm(p + "/ffn/norm", WT)
    lin("text/mlm/dense", WT, WT)
    norm("text/mlm/norm", WT)
    s["text/mlm/bias"] = (VOCAB,)
    lin("image_proj", C, WI)
    lin("text_proj", C, WT)
    lin("itm_head", 2, WT)
    s["temperature"] = ()
    return s


def random_params(gen):
    p = {}
    for name, shape in sorted(shapes().items()):
        x = 0.15 * torch.randn(shape, generator=gen)
        if "norm" in name.split("/")[-2:][0] and name.endswith("weight"):
            x = x + 1
        p[name] = x
    p["temperature"] = torch.tensor(TAU)
    return p


class Model:
    def __init__(self, p):
        self.p = p

    def lin(self, name, x):
        return x @ self.p[name + "/weight"].T + self.p[name + "/bias"]

    def norm(self, name, x, eps):
        return F.layer_norm(x, x.shape[-1:], self.p[name + "/weight"], self.p[name + "/bias"], eps)

    def attend(self, q, k, v, mask):
        def heads(x):
            return x.view(x.shape[0], x.shape[1], HEADS, -1).transpose(1, 2)

        q, k, v = heads(q), heads(k), heads(v)
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if mask is not None:
            s = s + (1 - mask[:, None, None, :]) * -10000.0
        o = (s.softmax(-1) @ v).transpose(1, 2)
        return o.reshape(o.shape[0], o.shape[1], -1)

    def image(self, x):
        w = self.p["image/patch_embed/weight"].view(WI, 3, PATCH, PATCH)
        x = F.conv2d(x, w, self.p["image/patch_embed/bias"], stride=PATCH)
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.p["image/cls_token"].expand(x.shape[0], 1, WI), x], 1)
        x = x + self.p["image/pos_embed"]
        for i in range(DEPTH):
            p = f"image/blocks/{i:02d}"
            q, k, v = self.lin(p + "/attn/qkv", self.norm(p + "/norm1", x, 1e-6)).chunk(3, -1)
            x = x + self.lin(p + "/attn/proj", self.attend(q, k, v, None))
            x = x + self.lin(p + "/mlp/fc2", F.gelu(self.lin(p + "/mlp/fc1", self.norm(p + "/norm2", x, 1e-6))))
        return self.norm("image/norm", x, 1e-6)

    def bert_block(self, i, x, mask, image=None):
        p = f"text/layers/{i:02d}"
        q, k, v = self.lin(p + "/attention/qkv", x).chunk(3, -1)
        h = self.lin(p + "/attention/output", self.attend(q, k, v, mask))
        x = self.norm(p + "/attention/norm", x + h, 1e-12)
        if image is not None:
            q = self.lin(p + "/crossattention/query", x)
            k, v = self.lin(p + "/crossattention/kv", image).chunk(2, -1)
            h = self.lin(p + "/crossattention/output", self.attend(q, k, v, None))
            x = self.norm(p + "/crossattention/norm", x + h, 1e-12)
        h = self.lin(p + "/ffn/output", F.gelu(self.lin(p + "/ffn/intermediate", x)))
        return self.norm(p + "/ffn/norm", x + h, 1e-12)

    def text(self, ids, mask):
        x = self.p["text/embeddings/word/weight"][ids]
        x = x + self.p["text/embeddings/token_type/weight"][0]
        x = x + self.p["text/embeddings/position/weight"][: ids.shape[1]]
        x = self.norm("text/embeddings/norm", x, 1e-12)
        for i in range(LAYERS):
            x = self.bert_block(i, x, mask)
        return x

    def fusion(self, x, mask, image):
        for i in range(LAYERS, LAYERS + FUSION):
            x = self.bert_block(i, x, mask, image)
        return x

    def mlm(self, x):
        x = F.gelu(self.lin("text/mlm/dense", x))
        x = self.norm("text/mlm/norm", x, 1e-12)
        return x @ self.p["text/embeddings/word/weight"].T + self.p["text/mlm/bias"]

    def project(self, name, x):
        return F.normalize(self.lin(name, x[:, 0]), dim=-1)


def soft_ce(logits, target):
    return -(target * F.log_softmax(logits, -1)).sum(-1).mean()


def sample(logits, noise, ids):
    w = logits[:, :B].softmax(-1)
    same = torch.eye(B, dtype=torch.bool) if ids is None else ids[:, None] == ids[None, :]
    w = w.masked_fill(same, 0)
    return (w.log() + noise).argmax(-1)


def main(mode):
    gen = torch.Generator().manual_seed(11 if mode == "pair" else 12)
    online = {k: v.requires_grad_() for k, v in random_params(gen).items()}
    twin = random_params(gen)
    on, mo = Model(online), Model(twin)
    images = torch.randn(B, 3, SIZE, SIZE, generator=gen)
    lengths = torch.tensor([6, 4, 3, 5])
    mask = (torch.arange(L)[None] < lengths[:, None]).float()
    tokens = torch.randint(5, VOCAB, (B, L), generator=gen) * mask.long()
    tokens[:, 0] = 2
    ids = torch.tensor([7, 3, 7, 9]) if mode == "id" else torch.tensor([0, 1, 2, 3])
    places = torch.tensor([0 * L + 2, 0 * L + 5, 1 * L + 1, 2 * L + 2, 3 * L + 4])
    labels = tokens.flatten()[places]
    masked = tokens.clone().flatten()
    masked[places[:4]] = 4
    masked = masked.view(B, L)
    noise = -torch.log(-torch.log(torch.rand(2, B, B, generator=gen)))
    qi = F.normalize(torch.randn(Q, C, generator=gen), dim=-1)
    qt = F.normalize(torch.randn(Q, C, generator=gen), dim=-1)
    qids = torch.tensor([3, 9, -100, 7, 5, -100, -100, -100]) if mode == "id" else torch.full((Q,), -100)

    image, text = on.image(images), on.text(tokens, mask)
    fi, ft = on.project("image_proj", image), on.project("text_proj", text)
    with torch.no_grad():
        image_m, text_m = mo.image(images), mo.text(tokens, mask)
        fim, ftm = mo.project("image_proj", image_m), mo.project("text_proj", text_m)
        bank_t = torch.cat([ftm, qt[:FILLED]])
        bank_i = torch.cat([fim, qi[:FILLED]])
    tau = online["temperature"]
    i2t, t2i = fi @ bank_t.T / tau, ft @ bank_i.T / tau
    with torch.no_grad():
        if mode == "id":
            pos = (ids[:, None] == torch.cat([ids, qids[:FILLED]])[None, :]).float()
            hard = pos / pos.sum(1, keepdim=True)
        else:
            hard = torch.eye(B, B + FILLED)
        y_i2t = ALPHA * (fim @ bank_t.T / tau).softmax(-1) + (1 - ALPHA) * hard
        y_t2i = ALPHA * (ftm @ bank_i.T / tau).softmax(-1) + (1 - ALPHA) * hard
    itc = (soft_ce(i2t, y_i2t) + soft_ce(t2i, y_t2i)) / 2
    in_batch = fi @ ft.T / tau
    hard_b = hard[:, :B] / hard[:, :B].sum(1, keepdim=True)
    itc_b = (soft_ce(in_batch, hard_b) + soft_ce(in_batch.T, hard_b)) / 2

    with torch.no_grad():
        same = ids if mode == "id" else None
        neg_text, neg_image = sample(i2t, noise[0], same), sample(t2i, noise[1], same)
    pos = on.fusion(text, mask, image)
    neg1 = on.fusion(text, mask, image[neg_image])
    neg2 = on.fusion(text[neg_text], mask[neg_text], image)
    cls = torch.cat([pos[:, 0], neg1[:, 0], neg2[:, 0]])
    itm = F.cross_entropy(on.lin("itm_head", cls), torch.tensor([1] * B + [0] * 2 * B))

    logits = on.mlm(on.fusion(on.text(masked, mask), mask, image)).reshape(B * L, VOCAB)[places]
    with torch.no_grad():
        soft = mo.mlm(mo.fusion(mo.text(masked, mask), mask, image_m)).reshape(B * L, VOCAB)[places].softmax(-1)
    mlm = (1 - ALPHA) * F.cross_entropy(logits, labels) + ALPHA * soft_ce(logits, soft)

    w = {"itc": 1.0, "itc_in_batch": 0.5, "itm": 1.0, "mlm": 1.0}
    loss = w["itc"] * itc + w["itc_in_batch"] * itc_b + w["itm"] * itm + w["mlm"] * mlm
    loss.backward()

    pad = M - len(places)
    i32 = lambda x: x.to(torch.int32).contiguous()
    out = {
        "input/images": images, "input/tokens": i32(tokens), "input/lengths": i32(lengths), "input/ids": i32(ids),
        "input/masked": i32(masked), "input/mask_places": i32(F.pad(places, (0, pad))),
        "input/mask_labels": i32(F.pad(labels, (0, pad), value=-100)),
        "input/noise_i2t": noise[0].contiguous(), "input/noise_t2i": noise[1].contiguous(),
        "input/image_queue": qi, "input/text_queue": qt, "input/queue_ids": i32(qids),
        "expect/loss": loss.detach(), "expect/itc": itc.detach(), "expect/itc_in_batch": itc_b.detach(),
        "expect/itm": itm.detach(), "expect/mlm": mlm.detach(),
        "expect/image_m": fim, "expect/text_m": ftm,
    }
    for k, v in online.items():
        out["param/" + k] = v.detach()
        out["grad/" + k] = torch.zeros_like(v) if v.grad is None else v.grad
        if k.split("/")[0] in ("image", "text", "image_proj", "text_proj"):
            out["momentum/" + k] = twin[k]
    save_file({k: v.clone().contiguous() for k, v in out.items()}, f"model/testdata/albef_{mode}.safetensors")
    print(mode, {k: float(v) for k, v in out.items() if k.startswith("expect/") and v.dim() == 0})


if __name__ == "__main__":
    main("pair")
    main("id")
