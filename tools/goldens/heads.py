"""Golden training step of tiny alignment heads for model/heads_test.go.

An independent PyTorch implementation: two MLPs over features, L2 normalisation,
symmetric contrast within the batch. It knows nothing of the Go code but the names
of parameters and inputs.

Run from the repository root:  python tools/goldens/heads.py
Writes model/testdata/heads_{pair,id}.safetensors.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

B, D_IMAGE, D_TEXT, HIDDEN, C = 5, 6, 4, 10, 3
TAU, WEIGHT = 0.3, 2.0


def main(mode):
    torch.manual_seed(7)
    act = nn.GELU() if mode == "pair" else nn.ReLU()
    heads = {n: nn.Sequential(nn.Linear(d, HIDDEN), act, nn.Linear(HIDDEN, C))
             for n, d in (("image_head", D_IMAGE), ("text_head", D_TEXT))}
    for h in heads.values():
        for p in h.parameters():
            nn.init.normal_(p, std=0.5)
    tau = nn.Parameter(torch.tensor(TAU))
    image, text, ids = torch.randn(B, D_IMAGE), torch.randn(B, D_TEXT), torch.tensor([3, 1, 3, 2, 1])
    fi = F.normalize(heads["image_head"](image), dim=-1)
    ft = F.normalize(heads["text_head"](text), dim=-1)
    logits = fi @ ft.T / tau
    target = torch.eye(B)
    if mode == "id":
        target = (ids[:, None] == ids[None, :]).float()
        target = target / target.sum(1, keepdim=True)
    ce = lambda x: -(x.log_softmax(-1) * target).sum(-1).mean()
    contrast = (ce(logits) + ce(logits.T)) / 2
    loss = WEIGHT * contrast
    loss.backward()

    out = {"input/image": image, "input/text": text, "input/ids": ids.to(torch.int32), "expect/loss": loss,
           "expect/itc_in_batch": contrast, "expect/image": fi, "expect/text": ft,
           "param/temperature": tau, "grad/temperature": tau.grad}
    for name, h in heads.items():
        for layer, fc in (("fc1", h[0]), ("fc2", h[2])):
            for kind in ("weight", "bias"):
                p = getattr(fc, kind)
                out[f"param/{name}/{layer}/{kind}"], out[f"grad/{name}/{layer}/{kind}"] = p, p.grad
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, f"model/testdata/heads_{mode}.safetensors")
    print(mode, loss.item())


if __name__ == "__main__":
    main("pair")
    main("id")
