"""Writes train/optim/testdata/adamw.json: 20 steps of torch.optim.AdamW.

Two parameter groups (with and without decay), gradients clipped by
torch.nn.utils.clip_grad_norm_, a learning rate that changes every step.
Run from the repository root: python tools/goldens/adamw.py
"""
import json

import torch

torch.manual_seed(7)
SHAPES = {"layer/weight": (5, 3), "layer/bias": (5,), "norm/gamma": (3,), "temperature": ()}
NO_DECAY = {"layer/bias", "norm/gamma"}
STEPS, LR, CLIP = 20, 3e-2, 1.5
HYPER = dict(betas=(0.9, 0.98), eps=1e-6)

params = {n: torch.nn.Parameter(torch.randn(s)) for n, s in SHAPES.items()}
start = {n: p.detach().clone() for n, p in params.items()}
opt = torch.optim.AdamW([
    {"params": [p for n, p in params.items() if n not in NO_DECAY], "weight_decay": 0.1},
    {"params": [p for n, p in params.items() if n in NO_DECAY], "weight_decay": 0.0},
], lr=LR, foreach=False, **HYPER)

out = {"names": list(SHAPES), "shapes": [list(s) for s in SHAPES.values()], "clip": CLIP,
       "beta1": 0.9, "beta2": 0.98, "eps": 1e-6, "decay": 0.1, "lr": [], "norm": [], "grads": [], "params": []}
flat = lambda d: [v for t in d.values() for v in t.detach().double().flatten().tolist()]
out["start"] = flat(start)
for step in range(STEPS):
    for p in params.values():
        p.grad = torch.randn(p.shape) * (0.05 if step % 3 == 0 else 1.0)
    out["grads"].append(flat({n: p.grad for n, p in params.items()}))
    out["norm"].append(torch.nn.utils.clip_grad_norm_(params.values(), CLIP).item())
    lr = LR * (1 - step / 40)
    for g in opt.param_groups:
        g["lr"] = lr
    opt.step()
    out["lr"].append(lr)
    out["params"].append(flat(params))
with open("train/optim/testdata/adamw.json", "w") as f:
    json.dump(out, f)
    f.write("\n")
