"""Golden towers with adapters of low rank for model/towers_golden_test.go.

The towers of towers.py with an adapter beside every linear layer of their blocks, added by hand
to what the layer gives: s dropout-free x A^T B^T with s = alpha/r = 3/2 (Hu et al. 2021). Queries,
keys and values have one adapter: one A, and the rows of one B.

Run from the root of the repository with the Python of towers.py:

    python tools/goldens/lora.py

Writes model/testdata/tower_lora_*.safetensors.
"""

import torch
import towers

RANK, ALPHA = 2, 3


class Adapted(towers.Names):
    def __init__(self, model):
        super().__init__(model)
        self.modules = dict(model.named_modules())
        self.gen = torch.Generator().manual_seed(77)

    def layer(self, ours, *theirs):
        super().layer(ours, *theirs)
        layers = [self.modules[t] for t in theirs]
        if not all(isinstance(m, torch.nn.Linear) for m in layers):
            return
        out = [m.out_features for m in layers]
        new = lambda *shape: torch.nn.Parameter((0.3 * torch.randn(shape, generator=self.gen)).double())
        a, b = new(RANK, layers[0].in_features), new(sum(out), RANK)
        for m, part in zip(layers, zip(torch.tensor([0, *out]).cumsum(0).tolist(), out)):
            lo, n = part
            m.register_forward_hook(lambda _, x, y, lo=lo, n=n: y + ALPHA / RANK * (x[0] @ a.T) @ b[lo : lo + n].T)
        for name, p in (("lora_a", a), ("lora_b", b)):
            self.theirs[f"{ours}/{name}"] = p
            self.add(f"{ours}/{name}", f"{ours}/{name}")


if __name__ == "__main__":
    write = towers.write
    towers.Names = Adapted
    towers.write = lambda name, *args, **more: write("lora_" + name, *args, **more)
    towers.clip_image()
    towers.clip_text()
    towers.roberta()
