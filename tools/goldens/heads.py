"""Golden training step of tiny alignment heads for model/heads_test.go.

An independent PyTorch implementation: two MLPs over features, L2 normalisation,
symmetric contrast within the batch. Mode deep has three hidden layers with layer norms and
skip connections, SiLU, and features on two spheres; the images are as wide as its hidden
layers. Mode gera adds the geometric term (eq. 3 and 4 of Klebe et al., "GeRA") of both
sides, with neighbourhoods in two pools. It knows nothing of the Go code but the names of
parameters and inputs.

Run from the repository root:  python tools/goldens/heads.py
Writes model/testdata/heads_{pair,id,deep,gera}.safetensors.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

B, D_IMAGE, D_TEXT = 5, 6, 4
TAU, WEIGHT = 0.3, 2.0
POOL, K, ALPHA, EPS = 12, 4, 0.5, 0.8


class Deep(nn.Module):
    """Hidden layers with norms before the activation and skips where widths are equal."""

    def __init__(self, d, hidden, layers, out, spheres):
        super().__init__()
        self.spheres = spheres
        self.fc = nn.ModuleList(nn.Linear(hidden if i else d, hidden) for i in range(layers))
        self.fc.append(nn.Linear(hidden, out))
        self.norm = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))

    def forward(self, x):
        for fc, norm in zip(self.fc, self.norm):
            y = F.silu(norm(fc(x)))
            x = x + y if x.shape == y.shape else y
        y = self.fc[-1](x)
        return F.normalize(y.view(len(y), self.spheres, -1), dim=-1).flatten(1)

    def named(self):
        for i, fc in enumerate(self.fc):
            yield f"fc{i + 1}", fc
        for i, norm in enumerate(self.norm):
            yield f"norm{i + 1}", norm


def kernel(x):
    """Rows of the heat kernel of K unit vectors, each divided by its sum."""
    w = torch.exp(-(x[:, None] - x[None]).square().sum(-1) / (4 * EPS))
    return w / w.sum(1, keepdim=True)


def geometric(head, pool, near):
    total = 0.0
    for rows in near:
        before, after = F.normalize(pool[rows], dim=-1), F.normalize(head(pool[rows]), dim=-1)
        total = total + (kernel(before) - kernel(after)).square().sum()
    return total / len(near)


def main(mode):
    torch.manual_seed(7)
    if mode == "deep":
        heads = {"image_head": Deep(D_IMAGE, 6, 3, 6, 2), "text_head": Deep(D_TEXT, 6, 3, 6, 2)}
        layers = lambda h: h.named()
    else:
        act = nn.ReLU() if mode == "id" else nn.GELU()
        heads = {n: nn.Sequential(nn.Linear(d, 10), act, nn.Linear(10, 3))
                 for n, d in (("image_head", D_IMAGE), ("text_head", D_TEXT))}
        layers = lambda h: (("fc1", h[0]), ("fc2", h[2]))
    for h in heads.values():
        for p in h.parameters():
            nn.init.normal_(p, std=0.5)
    tau = nn.Parameter(torch.tensor(TAU))
    image, text, ids = torch.randn(B, D_IMAGE), torch.randn(B, D_TEXT), torch.tensor([3, 1, 3, 2, 1])
    unit = (lambda x: x) if mode == "deep" else lambda x: F.normalize(x, dim=-1)
    fi, ft = unit(heads["image_head"](image)), unit(heads["text_head"](text))
    logits = fi @ ft.T / tau
    target = torch.eye(B)
    if mode == "id":
        target = (ids[:, None] == ids[None, :]).float()
        target = target / target.sum(1, keepdim=True)
    ce = lambda x: -(x.log_softmax(-1) * target).sum(-1).mean()
    contrast = (ce(logits) + ce(logits.T)) / 2
    loss = WEIGHT * contrast
    more = {}
    if mode == "gera":
        for name, d in (("image", D_IMAGE), ("text", D_TEXT)):
            pool = torch.randn(POOL, d)
            near = torch.stack([torch.randperm(POOL)[:K] for _ in range(B)])
            term = geometric(heads[name + "_head"], pool, near)
            loss = loss + ALPHA * term
            more[f"input/{name}_pool"], more[f"input/{name}_near"], more[f"expect/geometric_{name}"] = pool, near.to(torch.int32), term
    loss.backward()

    out = {"input/image": image, "input/text": text, "input/ids": ids.to(torch.int32), "expect/loss": loss,
           "expect/itc_in_batch": contrast, "expect/image": fi, "expect/text": ft,
           "param/temperature": tau, "grad/temperature": tau.grad}
    out |= more
    for name, h in heads.items():
        for layer, fc in layers(h):
            for kind in ("weight", "bias"):
                p = getattr(fc, kind)
                out[f"param/{name}/{layer}/{kind}"], out[f"grad/{name}/{layer}/{kind}"] = p, p.grad
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, f"model/testdata/heads_{mode}.safetensors")
    print(mode, loss.item())


if __name__ == "__main__":
    main("pair")
    main("id")
    main("deep")
    main("gera")
