"""Golden steps of fine-tuning for classification, for model/classes_test.go.

An independent PyTorch vision transformer with a linear classifier over its class token, or over a layer norm of it, or over the
mean of its patches. The loss is a cross-entropy with the whole target written out, as timm does (mixup_target and
SoftTargetCrossEntropy): label smoothing, and of mixed images lambda times the target of an image and 1-lambda times that of the
image at its place from the end. The mixed images are written out pixel by pixel. Lambda and the box are those that the seeds of
the test draw.

Run from the repository root:  python tools/goldens/classification.py   (torch 2.15)
Writes model/testdata/classes_{plain,mixup,cutmix}.safetensors.
"""
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

sys.path.insert(0, "tools/goldens")
from classes import attend, lin, norm

N, SIZE, PATCH, D, HEADS, DEPTH, K = 4, 8, 4, 16, 2, 2, 5
LABELS = [3, 0, 4, 3]


def shapes(head_norm):
    s = {"image/patch_embed/weight": (D, 3 * PATCH * PATCH), "image/patch_embed/bias": (D,), "image/cls_token": (1, D),
         "image/pos_embed": (1 + (SIZE // PATCH) ** 2, D), "class_head/classifier/weight": (K, D), "class_head/classifier/bias": (K,)}
    norms = ["image/norm"] + (["class_head/norm"] if head_norm else [])
    for i in range(DEPTH):
        b = f"image/blocks/{i:02d}"
        norms += [b + "/norm1", b + "/norm2"]
        for name, out, inp in (("attn/qkv", 3 * D, D), ("attn/proj", D, D), ("mlp/fc1", 4 * D, D), ("mlp/fc2", D, 4 * D)):
            s[f"{b}/{name}/weight"], s[f"{b}/{name}/bias"] = (out, inp), (out,)
    for name in norms:
        s[name + "/weight"], s[name + "/bias"] = (D,), (D,)
    return s


def tower(p, x, mean):
    x = F.conv2d(x, p["image/patch_embed/weight"].view(D, 3, PATCH, PATCH), p["image/patch_embed/bias"], stride=PATCH)
    x = torch.cat([p["image/cls_token"].expand(N, 1, D), x.flatten(2).transpose(1, 2)], 1) + p["image/pos_embed"]
    for i in range(DEPTH):
        b = f"image/blocks/{i:02d}"
        x = x + lin(p, b + "/attn/proj", attend(lin(p, b + "/attn/qkv", norm(p, b + "/norm1", x, 1e-6)), HEADS, None))
        x = x + lin(p, b + "/mlp/fc2", F.gelu(lin(p, b + "/mlp/fc1", norm(p, b + "/norm2", x, 1e-6))))
    if mean:  # of the patches, the final norm comes after it
        return norm(p, "image/norm", x[:, 1:].mean(1), 1e-6)
    return norm(p, "image/norm", x, 1e-6)[:, 0]


def main(name, seed, smoothing, head_norm=False, mean=False, lam=None, box=None, unknown=None):
    gen = torch.Generator().manual_seed(seed)
    p = {}
    for key, shape in sorted(shapes(head_norm).items()):
        p[key] = 0.2 * torch.randn(shape, generator=gen)
        if "norm" in key.split("/")[-2] and key.endswith("weight"):
            p[key] += 1
        p[key].requires_grad_()
    images = torch.randn(N, 3, SIZE, SIZE, generator=gen)
    labels = torch.tensor(LABELS)
    target = F.one_hot(labels, K) * (1 - smoothing) + smoothing / K
    seen = images.clone()
    if box is not None:
        (x0, y0), (x1, y1) = box
        for i in range(N):
            for y in range(y0, y1):
                for x in range(x0, x1):
                    seen[i, :, y, x] = images[N - 1 - i, :, y, x]
        lam = 1 - (x1 - x0) * (y1 - y0) / SIZE**2
    elif lam is not None:
        seen = torch.stack([lam * images[i] + (1 - lam) * images[N - 1 - i] for i in range(N)])
    if lam is not None:
        target = torch.stack([lam * target[i] + (1 - lam) * target[N - 1 - i] for i in range(N)])

    def logits(x):
        x = tower(p, x, mean)
        if head_norm:
            x = norm(p, "class_head/norm", x, 1e-6)
        return lin(p, "class_head/classifier", x)

    rows = -(target * logits(seen).log_softmax(1)).sum(1)
    if unknown is not None:
        labels[unknown] = -1
        rows = rows[torch.arange(N) != unknown]
    loss = rows.mean()
    loss.backward()
    out = {"input/images": images, "input/labels": labels.to(torch.int32), "expect/loss": loss.reshape(1), "expect/logits": logits(images)}
    for key, x in p.items():
        out["param/" + key], out["grad/" + key] = x, x.grad
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, f"model/testdata/classes_{name}.safetensors")
    print(name, loss.item())


if __name__ == "__main__":
    main("plain", 41, 0.1, unknown=1)
    main("mixup", 42, 0.1, head_norm=True, lam=0.7309414617502998)
    main("cutmix", 43, 0.0, mean=True, box=((3, 0), (8, 5)))
