"""What the scripts of this folder that write JSON cases have in common."""

import torch


def rand(gen, *shape):
    """Multiples of 1/64 in [-2, 2): exact in float32 and short in JSON."""
    return torch.randint(-128, 128, shape, generator=gen).double() / 64


def array(x):
    values = x.detach().flatten().tolist()
    if x.dtype == torch.float64:
        values = [float(f"{v:.9g}") for v in values]
    return {"shape": list(x.shape), "data": values}
