"""Golden heat maps of a tiny ALBEF for model/heatmaps_test.go.

The model, weights and pairs are those of albef.py. All pairs go through it as one batch; the probabilities of its
cross-attention, or of the attention within the image tower, are computed in the open and keep their gradients. Then
maps are enlarged to pictures of other sizes, and boxes are ranked by what they hold of them.

Run from the repository root:  python tools/goldens/grounding.py   (torch 2.15)
Writes model/testdata/heatmaps.safetensors: itm/<layer> and itc/<block> (B, P); of each the scores of BOXES within pictures of
HEIGHT x WIDTH pixels, <map>/scores (B, boxes).
"""
import math
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

sys.path.insert(0, "tools/goldens")
import albef  # noqa: E402

HEIGHT, WIDTH = 37, 50
BOXES = torch.tensor([[0, 0, 50, 37], [3.7, 2.2, 20.5, 12.9], [30, 20, 20, 17], [10, 10, 4, 4.5], [25, 0, 25, 18.5]])


class Watched(albef.Model):
    """The tiny ALBEF with the probabilities of every attention kept, in the order of the layers."""

    def __init__(self, p):
        super().__init__(p)
        self.kept = []

    def attend(self, q, k, v, mask):
        def heads(x):
            return x.view(x.shape[0], x.shape[1], albef.HEADS, -1).transpose(1, 2)

        q, k, v = heads(q), heads(k), heads(v)
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if mask is not None:
            s = s + (1 - mask[:, None, None, :]) * -10000.0
        a = s.softmax(-1)
        if a.requires_grad:
            a.retain_grad()
        self.kept.append(a)
        o = (a @ v).transpose(1, 2)
        return o.reshape(o.shape[0], o.shape[1], -1)


def main():
    file = load_file("model/testdata/albef_pair.safetensors")
    p = {k.removeprefix("param/"): v.requires_grad_() for k, v in file.items() if k.startswith("param/")}
    images, tokens, lengths = file["input/images"], file["input/tokens"].long(), file["input/lengths"]
    mask = (torch.arange(albef.L)[None] < lengths[:, None]).float()
    out = {}
    m = Watched(p)
    image, text = m.image(images), m.text(tokens, mask)
    m.kept.clear()
    fused = m.fusion(text, mask, image)
    m.lin("itm_head", fused[:, 0])[:, 1].sum().backward()
    for layer, a in enumerate(m.kept[1::2]):  # behind each self-attention
        on = mask[:, None, :, None]
        h = (a[..., 1:] * on) * (a.grad[..., 1:].clamp(min=0) * on)
        out[f"itm/{layer}"] = h.mean(1).mean(1)
    m = Watched(p)
    f = m.project("image_proj", m.image(images))
    blocks = list(m.kept)
    (f * m.project("text_proj", m.text(tokens, mask))).sum().backward()
    for block, a in enumerate(blocks):
        out[f"itc/{block}"] = (a[:, :, 0, 1:] * a.grad[:, :, 0, 1:].clamp(min=0)).mean(1)
    side = albef.SIZE // albef.PATCH
    for name, h in list(out.items()):
        big = F.interpolate(h.detach().view(-1, 1, side, side), size=(HEIGHT, WIDTH), mode="bicubic")[:, 0]
        scores = [[g[int(y) : int(y + hh), int(x) : int(x + w)].sum() / (w * hh) ** 0.5 for x, y, w, hh in BOXES] for g in big]
        out[name + "/scores"] = torch.tensor(scores)
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, "model/testdata/heatmaps.safetensors")


if __name__ == "__main__":
    main()
