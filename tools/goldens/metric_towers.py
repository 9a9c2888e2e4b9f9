"""Golden towers and a golden step with a learned metric in attention, for model/towers_golden_test.go and
model/golden_test.go.

The towers of towers.py and the step of albef.py, in which every key k of a head is W k: q^T W k in the place of q^T k.
In the towers W is one matrix of each head, blocks that the heads of a layer share, or a diagonal; in the step it is one matrix of
each head in all attention, cross-attention included.

Run from the root of the repository with the Python of towers.py:

    python tools/goldens/metric_towers.py

Writes model/testdata/tower_metric_*.safetensors and albef_metric.safetensors.
"""

import albef
import torch
import towers


def keyed(k, w):
    """W k for keys (..., D) and W of a head or of each, as a diagonal (d), blocks (N, d, d) or a matrix (d, d)."""
    if w.dim() == 1:
        w = torch.diag(w)
    elif w.dim() == 3:
        w = torch.block_diag(*w)
    w = torch.block_diag(*[w] * (k.shape[-1] // w.shape[0]))
    return k @ w.T


class Keyed(towers.Names):
    """shape is that of W."""

    shape = ()

    def __init__(self, model):
        super().__init__(model)
        self.modules = dict(model.named_modules())
        self.gen = torch.Generator().manual_seed(78)

    def layer(self, ours, *theirs):
        super().layer(ours, *theirs)
        at, name = ours.rsplit("/", 1)
        if name != "qkv":
            return
        w = torch.nn.Parameter((0.4 * torch.randn(self.shape, generator=self.gen) + 0.5).double())
        self.modules[theirs[1]].register_forward_hook(lambda _, x, y: keyed(y, w))
        self.theirs[f"{at}/gssf/weight"] = w
        self.add(f"{at}/gssf/weight", f"{at}/gssf/weight", of=lambda x: x[0])


class Step(albef.Model):
    def lin(self, name, x):
        y = super().lin(name, x)
        if name.endswith("/qkv"):
            q, k, v = y.chunk(3, -1)
            return torch.cat([q, keyed(k, self.p[name.removesuffix("qkv") + "gssf/weight"]), v], -1)
        if name.endswith("/kv"):
            k, v = y.chunk(2, -1)
            return torch.cat([keyed(k, self.p[name.removesuffix("kv") + "gssf/weight"]), v], -1)
        return y


def shapes(plain=albef.shapes):
    s = plain()
    for name in list(s):
        at, last = name.rsplit("/", 2)[0], name.split("/")[-2:]
        if last in (["qkv", "weight"], ["kv", "weight"]):
            d = s[name][0] // (3 if last[0] == "qkv" else 2) // albef.HEADS
            s[f"{at}/gssf/weight"] = (albef.HEADS, d, d)
    return s


if __name__ == "__main__":
    write = towers.write
    towers.Names = Keyed
    d = towers.D // towers.H
    for name, run, shape in (("dense", towers.clip_image, (towers.H, d, d)), ("shared", towers.clip_text, (2, d // 2, d // 2)), ("diag", towers.mpnet, (towers.D,))):
        Keyed.shape = shape
        towers.write = lambda tower, *args, **more: write(f"metric_{name}", *args, **more)
        run()
    albef.Model, albef.shapes = Step, shapes
    albef.main("metric")
