"""Golden training step of visual entailment for model/entailment_golden_test.go: the tiny ALBEF of albef.py with a classifier over
the first fused token, and soft targets of its momentum twin.

Run from the repository root:  python tools/goldens/entailment.py
Writes model/testdata/entailment.safetensors.
"""
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from albef import ALPHA, B, L, SIZE, VOCAB, WT, Model, random_params, soft_ce

CLASSES = 3


def head(gen):
    n = lambda *s: 0.3 * torch.randn(s, generator=gen)
    return {"task_head/dense/weight": n(WT, WT), "task_head/dense/bias": n(WT),
            "task_head/classifier/weight": n(CLASSES, WT), "task_head/classifier/bias": n(CLASSES)}


def logits(m, image, tokens, mask):
    fused = m.fusion(m.text(tokens, mask), mask, m.image(image))
    return m.lin("task_head/classifier", F.relu(m.lin("task_head/dense", fused[:, 0])))


def main():
    gen = torch.Generator().manual_seed(31)
    online = {k: v.requires_grad_() for k, v in {**random_params(gen), **head(gen)}.items()}
    twin = {**random_params(gen), **head(gen)}
    images = torch.randn(B, 3, SIZE, SIZE, generator=gen)
    lengths = torch.tensor([6, 4, 3, 5])
    mask = (torch.arange(L)[None] < lengths[:, None]).float()
    tokens = torch.randint(5, VOCAB, (B, L), generator=gen) * mask.long()
    tokens[:, 0] = 2
    labels = torch.tensor([2, 0, 1, 2])
    z = logits(Model(online), images, tokens, mask)
    with torch.no_grad():
        soft = logits(Model(twin), images, tokens, mask).softmax(-1)
    loss = (1 - ALPHA) * F.cross_entropy(z, labels) + ALPHA * soft_ce(z, soft)
    loss.backward()
    i32 = lambda x: x.to(torch.int32).contiguous()
    out = {"input/images": images, "input/tokens": i32(tokens), "input/lengths": i32(lengths), "input/labels": i32(labels),
           "expect/entailment": loss.detach(), "expect/logits": z.detach()}
    for k, v in online.items():
        if v.grad is not None:
            out["param/" + k], out["grad/" + k], out["momentum/" + k] = v.detach(), v.grad, twin[k]
    save_file({k: v.clone().contiguous() for k, v in out.items()}, "model/testdata/entailment.safetensors")
    print(float(loss.detach()))


if __name__ == "__main__":
    main()
