"""Whether the steps are what they should be: golden files, an independent formulation, bf16 beside fp32."""
import math
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

import albef
import clip
import heads
import settings
import towers

LIMIT = 1e-4  # of a value's largest element, in 32 bits


def golden_settings(g):
    """The tiny model of tools/goldens/albef.py, sizes from its weights."""
    size, (count, in_batch) = g["input/images"].shape[-1], (2, 0.5)
    width, patch = g["param/image/patch_embed/weight"].shape[0], math.isqrt(g["param/image/patch_embed/weight"].shape[1] // 3)
    layers = {k.split("/")[3] for k in g if k.startswith("param/text/layers/")}
    fusion = {k.split("/")[3] for k in g if k.startswith("param/text/layers/") and "/crossattention/" in k}
    blocks = {k.split("/")[3] for k in g if k.startswith("param/image/blocks/")}
    positions, text_width = g["param/text/embeddings/position/weight"].shape
    return settings.overlay(settings.DEFAULTS, {
        "data": {"vocab_size": g["param/text/embeddings/word/weight"].shape[0]},
        "model": {
            "image": {"size": size, "patch": patch, "depth": len(blocks), "width": width, "heads": count},
            "text": {"layers": len(layers) - len(fusion), "fusion_layers": len(fusion), "width": text_width,
                     "heads": count, "positions": positions, "dropout": 0.0},
            "head": {"dim": g["param/image_proj/weight"].shape[0]},
        },
        "queue": {"size": g["input/image_queue"].shape[0]},
        "objective": {"itc": {"in_batch_weight": in_batch}},
    })


def golden_name(name):
    """online.image.blocks.0.norm1.weight -> image/blocks/00/norm1/weight"""
    parts = [p.zfill(2) if p.isdigit() else p for p in name.split(".")]
    return "/".join(parts[1:] if parts[0] in ("online", "teacher") else parts)


class Report:
    """Compares values by name and remembers whether one is off."""

    def __init__(self):
        self.failed = False

    def compare(self, name, got, want, limit=LIMIT):
        """The largest difference as a share of the largest element."""
        scale = max(want.abs().max().item(), 1e-7)
        diff = (got.detach() - want).abs().max().item() / (scale if scale > 1e-7 else 1)
        if not diff <= limit:
            self.failed = True
            print(f"{name}: differs by {diff:.1e} of its largest element, allowed {limit:.0e}", file=sys.stderr)
        return diff


def golden_weights(m, g):
    with torch.no_grad():
        for name, p in m.named_parameters():
            p.copy_(g[("momentum/" if name.startswith("teacher.") else "param/") + golden_name(name)])


def against(path, m, g, values, report):
    """Compares values and gradients with those that a golden file expects."""
    worst = {k: report.compare(k, got, g["expect/" + k]) for k, got in values.items()}
    worst["gradients"] = max(
        report.compare(name, p.grad, g["grad/" + golden_name(name)]) for name, p in m.named_parameters() if p.requires_grad
    )
    print(f"{path}, layout {m.layout}: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))


def golden_heads(path, report, on):
    """Compares loss and gradients with the golden step of tools/goldens/heads.py."""
    g = load_file(path, on)
    h, image, text = *g["param/image_head/fc1/weight"].shape, g["param/text_head/fc1/weight"].shape[1]
    m = heads.Heads(settings.overlay(settings.DEFAULTS, {
        "model": {"head": {"dim": len(g["param/image_head/fc2/weight"])},
                  "heads": {"in_image": image, "in_text": text, "hidden": h, "dropout": 0.0}},
        "objective": {"itc": {"in_batch_weight": 2.0}},  # WEIGHT there
    }))
    golden_weights(m, g)
    loss, parts = m(images=g["input/image"], texts=g["input/text"])
    loss.backward()
    against(path, m, g, {"loss": loss, **parts}, report)


def golden(path, layout, compiled, report, on):
    """Compares loss parts, features and gradients with a golden step of ALBEF."""
    g = load_file(path, on)
    m = albef.ALBEF(golden_settings(g), layout)
    golden_weights(m, g)
    m.image_queue.copy_(g["input/image_queue"])
    m.text_queue.copy_(g["input/text_queue"])
    if compiled:
        towers.compile_layers(m)
    ints = lambda k: g["input/" + k].long()
    real = ints("mask_labels") >= 0
    loss, parts, fim, ftm = m(
        images=g["input/images"], tokens=ints("tokens"), masked=ints("masked"), lengths=ints("lengths"),
        places=ints("mask_places")[real], labels=ints("mask_labels")[real],
        noise=torch.stack([g["input/noise_i2t"], g["input/noise_t2i"]]), filled=5,
    )
    loss.backward()
    against(path, m, g, {"loss": loss, **parts, "image_m": fim, "text_m": ftm}, report)


SMALL = {
    "data": {"tokens": 7, "vocab_size": 53},
    "model": {
        "image": {"size": 32, "patch": 8, "depth": 2, "width": 32, "heads": 2},
        "text": {"layers": 2, "fusion_layers": 2, "width": 48, "heads": 3, "positions": 9, "dropout": 0.0},
        "head": {"dim": 24},
        "heads": {"in_image": 20, "in_text": 28, "hidden": 56, "dropout": 0.0},
    },
    "queue": {"size": 40}, "train": {"batch_size": 6},
}


def small(**more):
    c = settings.overlay(settings.DEFAULTS, SMALL)
    for path, value in more.items():
        settings.assign(c, f"{path.replace('__', '.')}={value}")
    return c


def same_weights(make, layout, like=None):
    """A model of random weights large enough to matter, or those of another."""
    torch.manual_seed(3)
    m = make(layout)
    with torch.no_grad():
        for p in m.parameters():
            if p.dim() > 0:
                p.add_(torch.randn_like(p), alpha=0.1)
    if like is not None:
        m.load_state_dict(like.state_dict())
    return m


def step(m, batch):
    torch.manual_seed(5)
    out = m(**batch)
    out[0].backward()
    return out[0].detach(), {n: p.grad for n, p in m.named_parameters() if p.requires_grad}


def ragged(batch):
    """The batch with captions of different lengths."""
    if "lengths" in batch:
        l = batch["tokens"].shape[1]
        batch["lengths"] = 1 + torch.arange(len(batch["lengths"])) % l
    return batch


def layouts(name, make, report):
    """Every layout of a model gives the loss and the gradients of the first."""
    one = same_weights(make, type(make("merged")).layouts[0])
    batch = ragged(one.random_batch())
    loss, grads = step(one, batch)
    for layout in one.layouts[1:]:
        other, theirs = step(same_weights(make, layout, one), batch)
        worst = max(report.compare(f"{name} {layout} {n}", theirs[n], g) for n, g in grads.items())
        print(f"{name}, layout {layout} against {one.layouts[0]}: loss {report.compare(name, other, loss):.1e}, gradients {worst:.1e}")


def attention(q, k, v, heads, lengths):
    """Attention in float64, a loop over texts and heads."""
    out, d = torch.zeros_like(q), q.shape[-1] // heads
    for r in range(len(q)):
        n = k.shape[1] if lengths is None else int(lengths[r])
        for h in range(heads):
            at = slice(h * d, (h + 1) * d)
            w = (q[r, :, at] @ k[r, :n, at].T / d**0.5).softmax(-1)
            out[r, :, at] = w @ v[r, :n, at]
    return out


def norm(x, p, name, eps):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], eps)


def dense(x, p, name):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


def plain_contrast(a, b, temperature):
    a, b = a / a.norm(dim=-1, keepdim=True), b / b.norm(dim=-1, keepdim=True)
    s = a @ b.T / temperature
    return -(s.log_softmax(0).diagonal().mean() + s.log_softmax(1).diagonal().mean()) / 2


def plain_clip(p, c, batch):
    """The dual encoder from its parameters by name, in float64."""
    i, t = c["model"]["image"], c["model"]["text"]
    x = F.unfold(batch["images"].double(), i["patch"], stride=i["patch"]).transpose(1, 2)
    x = dense(x, p, "image.patch_embed")
    x = torch.cat([p["image.cls_token"].expand(len(x), 1, -1), x], 1) + p["image.pos_embed"]
    for n in range(i["depth"]):
        at = f"image.blocks.{n}."
        q, k, v = dense(norm(x, p, at + "norm1", 1e-6), p, at + "attn.qkv").chunk(3, -1)
        x = x + dense(attention(q, k, v, i["heads"], None), p, at + "attn.proj")
        x = x + dense(gelu(dense(norm(x, p, at + "norm2", 1e-6), p, at + "mlp.fc1")), p, at + "mlp.fc2")
    image = dense(norm(x, p, "image.norm", 1e-6)[:, 0], p, "image_proj")
    e = "text.embeddings."
    x = p[e + "word.weight"][batch["tokens"]] + p[e + "position.weight"][: batch["tokens"].shape[1]] + p[e + "token_type.weight"][0]
    x = norm(x, p, e + "norm", 1e-12)
    for n in range(t["layers"]):
        at = f"text.layers.{n}."
        q, k, v = dense(x, p, at + "attention.qkv").chunk(3, -1)
        h = dense(attention(q, k, v, t["heads"], batch["lengths"]), p, at + "attention.output")
        x = norm(x + h, p, at + "attention.norm", 1e-12)
        h = dense(gelu(dense(x, p, at + "ffn.intermediate")), p, at + "ffn.output")
        x = norm(x + h, p, at + "ffn.norm", 1e-12)
    return plain_contrast(image, dense(x[:, 0], p, "text_proj"), p["temperature"])


def plain_heads(p, c, batch):
    """The heads from their parameters by name, in float64."""
    out = [dense(gelu(dense(batch[k].double(), p, h + ".fc1")), p, h + ".fc2") for k, h in (("images", "image_head"), ("texts", "text_head"))]
    return plain_contrast(*out, p["temperature"])


def independent(name, make, plain, report):
    """A model against its formula written out anew in float64."""
    m = same_weights(make, "merged")
    batch = ragged(m.random_batch())
    loss, grads = step(m, batch)
    p = {n: v.detach().double().requires_grad_() for n, v in m.named_parameters()}
    want = plain(p, m.settings, batch)
    want.backward()
    worst = max(report.compare(f"{name} {n}", g, p[n].grad if p[n].grad is not None else torch.zeros_like(g)) for n, g in grads.items())
    print(f"{name} against float64 loops: loss {report.compare(name, loss, want.detach()):.1e}, gradients {worst:.1e}")


def bfloat16(name, make, layout, report, on, limit=5e-3):
    """The loss in bf16 beside that in fp32, of the same weights, batch and noise."""
    torch.manual_seed(3)
    one = make(layout)
    batch = ragged(one.random_batch())
    loss, grads = step(one, batch)
    towers.DTYPE = torch.bfloat16
    try:
        other = make(layout)
        other.load_state_dict(one.state_dict())
        with torch.autocast(on, torch.bfloat16):
            torch.manual_seed(5)
            out = other(**batch)
        out[0].backward()
    finally:
        towers.DTYPE = torch.float32
    params = dict(other.named_parameters())
    matrices = [(params[n].grad.flatten(), g.flatten()) for n, g in grads.items() if g.dim() > 1]
    cosine = F.cosine_similarity(*(torch.cat(gs) for gs in zip(*matrices)), dim=0).item()
    if not cosine > 0.99:
        report.failed = True
        print(f"{name}: gradients in bf16 point elsewhere, cosine {cosine:.4f}", file=sys.stderr)
    print(f"{name}, layout {layout}, bf16 against fp32: loss {report.compare(name, out[0], loss, limit):.1e}, cosine of the matrices' gradients {cosine:.5f}")


def run(folder, compiled, on="cpu"):
    """All checks on a device, or with compiled layers the golden steps of ALBEF; 1 if one failed."""
    with torch.device(on):  # of the checks' own tensors; the models name theirs in every step
        return run_on(folder, compiled, on)


def run_on(folder, compiled, on):
    report = Report()
    for layout in albef.ALBEF.layouts:
        golden(f"{folder}/albef_pair.safetensors", layout, compiled, report, on)
    if compiled:
        return int(report.failed)
    golden_heads(f"{folder}/heads_pair.safetensors", report, on)
    dual = {"model__text__fusion_layers": 0, "queue__size": 0, "objective__itc__in_batch_weight": 1.0}
    models = {
        "albef": lambda layout: albef.ALBEF(small(), layout),
        "albef of one fusion layer": lambda layout: albef.ALBEF(small(model__text__fusion_layers=1), layout),
        "clip": lambda layout: clip.CLIP(small(**dual), layout),
        "heads": lambda layout: heads.Heads(small(**dual), layout),
    }
    for name, make in models.items():
        layouts(name, make, report)
    independent("clip", models["clip"], plain_clip, report)
    independent("heads", models["heads"], plain_heads, report)
    for name in ("albef", "clip", "heads"):
        for layout in models[name]("merged").layouts:
            bfloat16(name, models[name], layout, report, on)
    return int(report.failed)
