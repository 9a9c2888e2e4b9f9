"""Values for ops/conv/golden_test.go: convolutions, what follows them and max pooling, by PyTorch's functions.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/conv.py

It writes ops/conv/testdata/conv.json, in float64. PyTorch has the channels first: images pass as planes and their results
come back as rows of places. Last run with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand

gen = torch.Generator().manual_seed(81)
cases = {}


def planes(x, height, width):
    return x.reshape(-1, height, width, x.shape[1]).permute(0, 3, 1, 2)


def places(y):
    return y.permute(0, 2, 3, 1).reshape(-1, y.shape[1])


def case(name, run, fixed=None, **inputs):
    """Adds run's output and the gradients of all inputs but the fixed ones."""
    fixed = fixed or {}
    leaves = {k: v.clone().requires_grad_() for k, v in inputs.items()}
    out = run(**leaves, **fixed)
    entry = {k: array(v) for k, v in {**inputs, **fixed}.items()}
    if leaves:
        dy = rand(gen, *out.shape)
        entry["dy"] = array(dy)
        (out * dy).sum().backward()
        for k, v in leaves.items():
            entry["d" + k] = array(v.grad)
    entry["out"] = array(out)
    cases[name] = entry


def convolution(height, width, stride, pad):
    return lambda x, w: places(F.conv2d(planes(x, height, width), w, stride=stride, padding=pad))


# Name, images, height and width, channels in and out, kernel, stride, pad.
for name, b, h, w, cin, cout, k, s, p in [
    ("stem", 1, 9, 7, 3, 4, 7, 2, 3),
    ("every second of 7", 2, 7, 7, 3, 5, 3, 2, 1),
    ("without a border", 2, 7, 6, 2, 3, 3, 2, 0),
    ("border", 2, 4, 5, 4, 3, 3, 1, 1),
    ("one place", 2, 3, 4, 5, 6, 1, 1, 0),
    ("one place of four", 2, 7, 5, 4, 3, 1, 2, 0),
    ("wide steps", 1, 8, 8, 2, 3, 3, 3, 1),
]:
    case(name, convolution(h, w, s, p), x=rand(gen, b * h * w, cin), w=rand(gen, cout, cin, k, k))

distinct = torch.randperm(2 * 7 * 6 * 3, generator=gen).double().reshape(-1, 3) / 64
case("max pool", lambda x: places(F.max_pool2d(planes(x, 7, 6), 3, 2, 1)), x=distinct)
case("max pool without overlap", lambda x: places(F.max_pool2d(planes(x, 7, 6), 2, 2)), x=distinct)
case("max pool of equal values", lambda x: places(F.max_pool2d(planes(x, 4, 4), 3, 2, 1)), x=torch.ones(16, 2).double())
case("from planes", lambda x: places(x), x=rand(gen, 2, 3, 4, 5))


def folded(x, w, gamma, beta, mean, variance, add=None):
    y = F.batch_norm(F.conv2d(planes(x, 6, 7), w, stride=2, padding=1), mean, variance, gamma, beta, False, 0, 1e-5)
    return F.relu(places(y) + add) if add is not None else places(y)


norm = {"gamma": rand(gen, 5), "beta": rand(gen, 5), "mean": rand(gen, 5), "variance": rand(gen, 5) ** 2 + 0.25}
images = {"x": rand(gen, 2 * 42, 3), "w": rand(gen, 5, 3, 3, 3), **norm}
case("folded", folded, images)
case("folded, residual and relu", folded, {**images, "add": rand(gen, 2 * 12, 5)})


def block(x, w, gamma, beta, add):
    y = F.batch_norm(F.conv2d(planes(x, 6, 7), w, stride=2, padding=1), None, None, gamma, beta, True, 0, 1e-5)
    return F.relu(places(y) + add)


case("convolution, batch norm, residual and relu", block, x=images["x"], w=images["w"], gamma=norm["gamma"], beta=norm["beta"], add=rand(gen, 2 * 12, 5))

out = pathlib.Path("ops/conv/testdata/conv.json")
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
