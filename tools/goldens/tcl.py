"""Values for the terms of triple contrastive learning (TCL).

Run with a Python that has torch and safetensors, from the root of the repository:

    python tools/goldens/tcl.py

It writes ops/testdata/local.json for ops/local_test.go. The local term is written as in
the reference: a softmax over one positive and the parts of all other samples for every
part, with 10000 added to what is masked. Last run with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F


def rand(gen, *shape):
    """Multiples of 1/64 in [-2, 2): exact in float32 and short in JSON."""
    return torch.randint(-128, 128, shape, generator=gen).double() / 64


def array(x):
    x = x.detach()
    values = x.flatten().tolist()
    if x.dtype == torch.float64:
        values = [float(f"{v:.9g}") for v in values]
    return {"shape": list(x.shape), "data": values}


def local_loss(s, mask):
    """s (B, B, P): whole i against part p of sample j; mask (B, P) of parts that exist."""
    b, _, p = s.shape
    own = torch.stack([s[i, i] for i in range(b)])  # (B, P)
    own = mask * own + 10000.0 * (1 - mask)
    other = 1 - torch.eye(b, dtype=s.dtype)[:, :, None]
    neg = (other * s) - 10000.0 * (1 - other)
    neg = mask[None] * neg - 10000.0 * (1 - mask[None])
    neg = neg.reshape(b, 1, b * p).expand(b, p, b * p)
    row = -F.log_softmax(torch.cat([own[:, :, None], neg], 2), 2)[:, :, 0]  # (B, P)
    return (row.sum(1) / mask.sum(1)).mean()


def local_case(gen, b, p, lengths=None, first=0):
    s = (2 * rand(gen, b, b * p)).requires_grad_()
    mask = torch.ones(b, p, dtype=torch.double)
    case = {"logits": s}
    if lengths is not None:
        for j, n in enumerate(lengths):
            mask[j, n:] = 0
        case["lengths"] = torch.tensor(lengths)
    mask[:, :first] = 0
    loss = local_loss(s.view(b, b, p), mask)
    loss.backward()
    return case | {"out": loss, "dlogits": s.grad}


def pool_case(gen, n, side, grid, c):
    x = rand(gen, n, 1 + side * side, c).requires_grad_()
    patches = x[:, 1:].transpose(1, 2).reshape(n, c, side, side)
    y = F.avg_pool2d(patches, side // grid).flatten(2).transpose(1, 2).reshape(-1, c)
    dy = rand(gen, *y.shape)
    (y * dy).sum().backward()
    return {"x": x.reshape(-1, c), "out": y, "dy": dy, "dx": x.grad.reshape(-1, c)}


def ops():
    gen = torch.Generator().manual_seed(21)
    cases = {
        "image parts": local_case(gen, 4, 4),
        "tokens of texts": local_case(gen, 5, 6, [6, 2, 4, 3, 5], 1),
        "pool 4x4 into 2x2": pool_case(gen, 3, 4, 2, 5),
        "pool 6x6 into 3x3": pool_case(gen, 2, 6, 3, 3),
        "pool 2x2 into 1": pool_case(gen, 2, 2, 1, 3),
    }
    data = {name: {k: array(v) for k, v in case.items()} for name, case in cases.items()}
    out = pathlib.Path("ops/testdata/local.json")
    out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items()) + "\n}\n")


if __name__ == "__main__":
    ops()
