"""Golden training steps of a tiny ViPMM for model/vipmm_test.go.

An independent PyTorch model of the whole system: BERT's text tower and timm's vision transformer by
nn.TransformerEncoderLayer, both mapped to one width and then by two layers with tanh between them, the teacher, the queue, and
all losses as ViPMM's equations say them, with the readings that docs/vipmm-formulas.md lists: global and local contrast, tokens against
images, text swapping, both contrasts with the queue and that of fused pairs. After a step of gradient descent the
teacher moves by the mean cosine of the texts with its own. It knows nothing of the Go code but the names of parameters and inputs.

Run from the root of the repository with a Python that has torch and safetensors; the last run was with torch 2.15:

    python tools/goldens/vipmm.py

Writes model/testdata/vipmm_{tucker,core,attention}.safetensors.
"""

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.func import functional_call

B, L, SIZE, PATCH, VOCAB, C, SHARED = 5, 7, 16, 8, 40, 8, 20
WI, WT, HEADS, DEPTH, LAYERS, POSITIONS = 16, 24, 2, 1, 1, 10
P = (SIZE // PATCH) ** 2
Q, FILLED, RANK, FUSED = 8, 5, 3, 6
LENGTHS = torch.tensor([7, 4, 3, 5, 6])  # with [CLS] before and [SEP] behind the words
NEGATIVES, SWAPS = [2, 3, 1, 4, 0], [0, 4, 2, 1, 3]
TAU, TAU1, TAU_QUEUE, TAU2, MU, RATE = 0.1, 0.2, 0.07, 0.1, 0.04, 0.05


def shapes(fusion):
    s = {}

    def lin(name, out, inp, bias=True):
        s[name + "/weight"] = (out, inp)
        if bias:
            s[name + "/bias"] = (out,)

    def norm(name, d):
        s[name + "/weight"], s[name + "/bias"] = (d,), (d,)

    lin("image/patch_embed", WI, 3 * PATCH * PATCH)
    s["image/cls_token"], s["image/pos_embed"] = (WI,), (1 + P, WI)
    for i in range(DEPTH):
        p = f"image/blocks/{i:02d}"
        norm(p + "/norm1", WI)
        lin(p + "/attn/qkv", 3 * WI, WI)
        lin(p + "/attn/proj", WI, WI)
        norm(p + "/norm2", WI)
        lin(p + "/mlp/fc1", 4 * WI, WI)
        lin(p + "/mlp/fc2", WI, 4 * WI)
    norm("image/norm", WI)
    for name, rows in {"word": VOCAB, "position": POSITIONS, "token_type": 2}.items():
        s[f"text/embeddings/{name}/weight"] = (rows, WT)
    norm("text/embeddings/norm", WT)
    for i in range(LAYERS):
        p = f"text/layers/{i:02d}"
        lin(p + "/attention/qkv", 3 * WT, WT)
        lin(p + "/attention/output", WT, WT)
        norm(p + "/attention/norm", WT)
        lin(p + "/ffn/intermediate", 4 * WT, WT)
        lin(p + "/ffn/output", WT, 4 * WT)
        norm(p + "/ffn/norm", WT)
    for side, width in {"image": WI, "text": WT}.items():
        lin(side + "_proj/shared", SHARED, width)
        lin(side + "_proj/fc1", SHARED, SHARED)
        lin(side + "_proj/fc2", C, SHARED)
    twins = list(s)
    if fusion == "attention":
        lin("adcl/attention/qkv", 3 * C, C)
        lin("adcl/attention/out", FUSED, C, False)
    else:
        if fusion == "core":
            lin("adcl/tucker/core", C, C * C, False)
        else:
            lin("adcl/tucker/image", RANK * C, C, False)
            lin("adcl/tucker/text", RANK * C, C, False)
        lin("adcl/tucker/out", FUSED, C, False)
    return s, twins


def encoder_layer(p, prefix, names, x, width, first, eps, padding=None):
    """One nn.TransformerEncoderLayer with the parameters of prefix."""
    layer = nn.TransformerEncoderLayer(width, HEADS, 4 * width, 0.0, "gelu", batch_first=True, norm_first=first, layer_norm_eps=eps, dtype=torch.float64)
    mine = dict(zip(["self_attn.in_proj_", "self_attn.out_proj.", "norm1.", "linear1.", "linear2.", "norm2."], names))
    weights = {t + part: p[f"{prefix}/{name}/{part}"] for t, name in mine.items() for part in ("weight", "bias")}
    return functional_call(layer, weights, (x,), {"src_key_padding_mask": padding})


def norm(p, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], p[name + "/weight"], p[name + "/bias"], eps)


def linear(p, name, x):
    return F.linear(x, p[name + "/weight"], p.get(name + "/bias"))


def image_tower(p, x):
    x = F.conv2d(x, p["image/patch_embed/weight"].view(WI, 3, PATCH, PATCH), p["image/patch_embed/bias"], stride=PATCH)
    x = torch.cat([p["image/cls_token"].expand(B, 1, WI), x.flatten(2).transpose(1, 2)], 1) + p["image/pos_embed"]
    for i in range(DEPTH):
        x = encoder_layer(p, f"image/blocks/{i:02d}", ["attn/qkv", "attn/proj", "norm1", "mlp/fc1", "mlp/fc2", "norm2"], x, WI, True, 1e-6)
    return norm(p, "image/norm", x, 1e-6)


def text_tower(p, ids, padding):
    x = p["text/embeddings/word/weight"][ids] + p["text/embeddings/position/weight"][:L] + p["text/embeddings/token_type/weight"][0]
    x = norm(p, "text/embeddings/norm", x, 1e-12)
    names = ["attention/qkv", "attention/output", "attention/norm", "ffn/intermediate", "ffn/output", "ffn/norm"]
    for i in range(LAYERS):
        x = encoder_layer(p, f"text/layers/{i:02d}", names, x, WT, False, 1e-12, padding)
    return x


def head(p, side, x):
    """Linear(w, 768), Linear(768, 768), tanh, Linear(768, 128), unit length."""
    x = torch.tanh(linear(p, side + "_proj/fc1", linear(p, side + "_proj/shared", x)))
    return F.normalize(linear(p, side + "_proj/fc2", x), dim=-1)


def encode(p, images, ids, padding):
    """Patches (B, P, C), words (B, L, C), y (B, C) and x (B, C)."""
    image, text = head(p, "image", image_tower(p, images)), head(p, "text", text_tower(p, ids, padding))
    return image[:, 1:], text, image[:, 0], text[:, 0]


def nce(logits):
    """Equations 4 and 6 with the logarithm, and their sum, equation 7."""
    own = torch.arange(len(logits))
    return F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)


def word_patch(words, patches):
    """Equations 8 to 12."""

    def phi(s, p):
        dots = s @ p.T
        attn, attn2 = dots.softmax(1), dots.softmax(0)
        summaries = (attn / TAU1).softmax(0).T @ s, (attn2 / TAU1).softmax(1) @ p
        score = lambda a, b: (F.cosine_similarity(a, b, dim=1) / TAU).exp().mean()
        return score(p, summaries[0]) + score(s, summaries[1])

    return nce(torch.stack([torch.stack([phi(s, p).log() for s in words]) for p in patches]))


def token_image(words, y, margin):
    """Equations 13 to 15."""
    return torch.cat([(margin - words[i] @ y[i] + words[i] @ y[NEGATIVES[i]]).clamp(min=0) for i in range(B)]).mean()


def text_swap(words, patches, x, y, margin, alpha):
    """Equations 16 to 19."""
    attend = lambda q, k: ((q @ k.T / C**0.5).softmax(1) @ k).mean(0)
    terms = []
    for i, j in enumerate(SWAPS):
        if i != j:
            f_y = attend(words[i], patches[i])
            g = x[i] @ y[i] + alpha * attend(patches[i], words[i]) @ f_y
            other = x[j] @ y[i] + alpha * attend(patches[i], words[j]) @ f_y
            terms.append((margin - g + other).clamp(min=0))
    return torch.stack(terms).mean()


def queue_contrast(f, aug, queue):
    """Algorithm 1."""
    logits = torch.cat([(f * aug).sum(1, keepdim=True), f @ queue[:FILLED].T], 1)
    return F.cross_entropy(logits / TAU_QUEUE, torch.zeros(B, dtype=torch.long))


def fuse(p, fusion, y, x):
    """Equation 22 of images y and texts x, with unit rows."""
    if fusion == "tucker":
        a, b = linear(p, "adcl/tucker/image", y).view(B, RANK, C), linear(p, "adcl/tucker/text", x).view(B, RANK, C)
        q = linear(p, "adcl/tucker/out", (a * b).sum(1))
    elif fusion == "core":
        core = p["adcl/tucker/core/weight"].view(C, C, C)  # (k, i, j)
        q = linear(p, "adcl/tucker/out", torch.einsum("kij,bi,bj->bk", core, y, x))
    else:
        q, k, v = linear(p, "adcl/attention/qkv", torch.stack([y, x], 1)).chunk(3, -1)  # (B, 2, C)
        q = linear(p, "adcl/attention/out", F.scaled_dot_product_attention(q, k, v).mean(1))
    return F.normalize(q, dim=1)


def main(fusion, seed):
    gen = torch.Generator().manual_seed(seed)
    rand = lambda *shape: torch.randn(*shape, generator=gen).float().double()
    all_shapes, twinned = shapes(fusion)
    p = {}
    for name, shape in sorted(all_shapes.items()):
        p[name] = (0.2 * rand(*shape)).float().double()
        if "norm" in name.split("/")[-2] and name.endswith("weight"):
            p[name] = (p[name] + 1).float().double()
    m = {k: (p[k] + 0.05 * rand(*p[k].shape)).float().double() for k in twinned}
    p = {k: v.requires_grad_() for k, v in p.items()}
    images, views = rand(B, 3, SIZE, SIZE), rand(B, 3, SIZE, SIZE)
    padding = torch.arange(L)[None] >= LENGTHS[:, None]
    ids = torch.randint(5, VOCAB, (B, L), generator=gen).masked_fill(padding, 0)
    ids[:, 0] = 2
    ids[torch.arange(B), LENGTHS - 1] = 3
    queues = [F.normalize(rand(Q, C), dim=1).float().double() for _ in range(2)]

    patches, text, y, x = encode(p, images, ids, padding)
    with torch.no_grad():
        _, _, y_aug, x_aug = encode(m, views, ids, padding)  # the same text, and a second view of the image
    words = [text[i, 1 : LENGTHS[i] - 1] for i in range(B)]
    losses = {
        "itc_in_batch": nce(y @ x.T / TAU) / 2,
        "adcl_t2v": queue_contrast(x, y_aug, queues[0]),
        "adcl_v2t": queue_contrast(y, x_aug, queues[1]),
        "adcl_fused": F.cross_entropy(fuse(p, fusion, y, x) @ fuse(p, fusion, y_aug, x_aug).T / TAU2, torch.arange(B)),
        "word_patch": word_patch(words, patches),
        "token_image": token_image(words, y, 0.5),
        "text_swap": text_swap(words, patches, x, y, 0.2, 0.5),
    }
    weights = {"itc_in_batch": 2} | {k: MU for k in losses if k.startswith("adcl")}
    total = sum(weights.get(k, 1) * v for k, v in losses.items())
    total.backward()

    # The online parameters move first, then the teacher by how alike the texts were before.
    w = F.cosine_similarity(x, x_aug, dim=1).mean().clamp(0, 1)
    after = {k: w * (p[k] - RATE * p[k].grad) + (1 - w) * m[k] for k in twinned}
    filled = [q.clone() for q in queues]
    for q, rows in zip(filled, (y_aug, x_aug)):
        q[[(FILLED + i) % Q for i in range(B)]] = rows

    i32 = lambda x: torch.as_tensor(x).to(torch.int32)
    out = {
        "input/images": images, "input/views": views, "input/tokens": i32(ids), "input/lengths": i32(LENGTHS),
        "input/negatives": i32(NEGATIVES), "input/swaps": i32(SWAPS), "expect/loss": total, "expect/online_weight": w,
        "input/image_queue": queues[0], "input/text_queue": queues[1], "after/image_queue": filled[0], "after/text_queue": filled[1],
    }
    out |= {f"expect/{k}": v for k, v in losses.items()}
    out |= {f"param/{k}": v for k, v in p.items()} | {f"grad/{k}": v.grad for k, v in p.items()}
    out |= {f"momentum/{k}": v for k, v in m.items()} | {f"after/{k}": v for k, v in after.items()}
    tensor = lambda v: (v if v.dtype == torch.int32 else v.float()).detach().clone().contiguous()
    return {k: tensor(v) for k, v in out.items()}


if __name__ == "__main__":
    for fusion, seed in {"tucker": 51, "core": 52, "attention": 53}.items():
        out = main(fusion, seed)
        save_file(out, f"model/testdata/vipmm_{fusion}.safetensors")
        print(fusion, {k[7:]: round(v.item(), 4) for k, v in out.items() if k.startswith("expect/")})
