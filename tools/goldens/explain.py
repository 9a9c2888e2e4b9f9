"""Golden Grad-CAM of tiny models for model/explain_test.go.

The models, weights and pairs are those of clip.py and albef.py, whose layers are watched here: the
tokens that each attention reads are kept with their gradients, and the attention probabilities of the
fusion layers are computed in the open. It knows nothing of the Go code but the names of parameters.

Run from the repository root:  python tools/goldens/explain.py   (torch 2.15)
Writes model/testdata/explain_{multi,oblique,sphere,euclid,albef}.safetensors.
"""
import math
import sys

import torch
from safetensors.torch import load_file, save_file
from torch import nn

sys.path.insert(0, "tools/goldens")
import albef  # noqa: E402
import clip  # noqa: E402


kept = []


def keep(x):
    x = x.clone()
    x.retain_grad()
    kept.append(x)
    return x


class Layer(nn.TransformerEncoderLayer):
    """A layer that keeps what its attention reads: behind the norm, where that comes first."""

    def __init__(self, *args, norm_first, **more):
        super().__init__(*args, norm_first=norm_first, **more)
        if norm_first:
            self.norm1.register_forward_hook(lambda _, args, x: keep(x))
        else:
            self.register_forward_pre_hook(lambda _, args: (keep(args[0]), *args[1:]))


def elementwise(x):
    return (x.grad * x).sum(-1)[0]


def channels(x):
    return (x.grad * x).clamp(min=0).mean(-1)[0]


def pooled(x):
    return (x.grad.mean(1, keepdim=True) * x).sum(-1)[0]


def dual(mode, spheres):
    file = load_file(f"model/testdata/clip_{mode}.safetensors")
    p = {k.removeprefix("param/"): v.requires_grad_() for k, v in file.items() if k.startswith("param/")}
    classes = spheres if mode == "multi" else 1
    out = {}
    clip.nn.TransformerEncoderLayer = Layer
    for row in range(3):
        for group in [None, *range(spheres if spheres > 1 else 0)]:
            kept.clear()
            length = int(file["input/lengths"][row])
            padding = torch.arange(clip.L)[None] >= length
            x = clip.head(mode, spheres, clip.image_tower(p, file["input/images"][row : row + 1], classes), p["image_proj/weight"])
            y = clip.head(mode, spheres, clip.text_tower(p, file["input/tokens"][row : row + 1].long(), padding, classes), p["text_proj/weight"])
            if mode == "euclid":
                score = -(x - y).square().sum().sqrt()
            else:
                score = (x * y).sum(-1)[0]
                score = score.sum() if group is None else score[group]
            score.backward()
            name = f"{row}/" + ("pair" if group is None else f"group{group}")
            out[name + "/score"] = score
            for layer in range(2):
                image = kept[layer][:, classes:]
                image.grad = kept[layer].grad[:, classes:]
                text = kept[2 + layer][:, classes - 1 :]
                text.grad = kept[2 + layer].grad[:, classes - 1 :]
                for side, tokens, real in ("image", image, clip.P), ("text", text, length):
                    out[f"{name}/{layer}/{side}/elementwise"] = elementwise(tokens)[:real]
                    out[f"{name}/{layer}/{side}/channels"] = channels(tokens)[:real]
                out[f"{name}/{layer}/image/pooled"] = pooled(image)
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, f"model/testdata/explain_{mode}.safetensors")


class Watched(albef.Model):
    """The tiny ALBEF with the probabilities of its cross-attention kept."""

    def __init__(self, p):
        super().__init__(p)
        self.kept = []

    def attend(self, q, k, v, mask):
        def heads(x):
            return x.view(x.shape[0], x.shape[1], albef.HEADS, -1).transpose(1, 2)

        if q.shape[1] == k.shape[1]:
            return super().attend(q, k, v, mask)
        q, k, v = heads(q), heads(k), heads(v)
        a = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        a.retain_grad()
        self.kept.append(a)
        o = (a @ v).transpose(1, 2)
        return o.reshape(o.shape[0], o.shape[1], -1)


def fused():
    file = load_file("model/testdata/albef_pair.safetensors")
    p = {k.removeprefix("param/"): v.requires_grad_() for k, v in file.items() if k.startswith("param/")}
    out = {}
    for row in range(3):
        m = Watched(p)
        mask = (torch.arange(albef.L)[None] < file["input/lengths"][row]).float()
        image = m.image(file["input/images"][row : row + 1])
        text = m.text(file["input/tokens"][row : row + 1].long(), mask)
        score = m.lin("itm_head", m.fusion(text, mask, image)[:, 0])[0, 1]
        score.backward()
        out[f"{row}/match/score"] = score
        for layer, a in enumerate(m.kept):
            out[f"{row}/match/{layer}"] = (a * a.grad.clamp(min=0)).mean(1)[0]
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, "model/testdata/explain_albef.safetensors")


if __name__ == "__main__":
    dual("multi", 4)
    dual("oblique", 2)
    dual("sphere", 1)
    dual("euclid", 1)
    fused()
