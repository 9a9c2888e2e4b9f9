"""Values for ops/contrast/negatives_golden_test.go: hard negatives, ids and accuracy.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/negatives.py

It writes ops/contrast/testdata/negatives.json. The weights of the hard negatives are those of
ALBEF's ITM loss, softmax(sim, dim=1) with zeros for the positives, or with a floor of 1e-4
added as later code does, in float64 on inputs that are exact in float32. Last run with torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

gen = torch.Generator().manual_seed(9)


def rand(*shape):
    """Multiples of 1/64 in [-2, 2): exact in float32 and short in JSON."""
    return torch.randint(-128, 128, shape, generator=gen).double() / 64


def array(x):
    values = x.flatten().tolist()
    if x.dtype == torch.float64:
        values = [float(f"{v:.9g}") for v in values]
    return {"shape": list(x.shape), "data": values}


def negatives(by_column, ids, floor=1e-4):
    b = 5
    sim = 3 * rand(b, b + 3)  # the last columns are a queue's
    sim[1, 1] += 30  # row 1 (or column 1) underflows everywhere but at its positive
    batch = sim[:, :b].T if by_column else sim[:, :b]
    weights = F.softmax(batch, dim=1) + floor
    if ids is None:
        weights.fill_diagonal_(0)
    else:
        weights.masked_fill_(ids[:, None] == ids[None, :], 0)
    noise = 2 * rand(b, b)
    case = {"logits": sim, "weights": weights, "noise": noise, "out": (weights.log() + noise).argmax(1)}
    return case if ids is None else case | {"rowIDs": ids}


ids = torch.tensor([4, 7, 4, 1, 7])
cases = {
    "image to text": negatives(False, None),
    "text to image": negatives(True, None),
    "image to text with ids": negatives(False, ids),
    "text to image with ids": negatives(True, ids),
}

x, y, index = (torch.randint(0, 100, (n,), generator=gen) for n in (7, 3, 9))
index %= 7
cases["gather ints"] = {"ids": x, "index": index, "out": x[index]}
cases["concat ints"] = {"ids": x, "index": y, "out": torch.cat([x, y, x])}
drawn = torch.tensor([1, 1, 0, 3, 2])
cases["negative labels"] = {"ids": drawn, "out": torch.where(drawn == torch.arange(5), -100, 0)}

# A permutation has no ties, for which argmax and this project's rule may differ.
logits = torch.randperm(24 * 6, generator=gen).double().reshape(24, 6) / 64
labels = torch.randint(0, 6, (24,), generator=gen)
labels[::2] = logits.argmax(1)[::2]  # about half are right
labels[[3, 4]] = -100
kept = labels >= 0
cases["accuracy"] = {"logits": logits, "labels": labels, "out": (logits.argmax(1) == labels)[kept].double().mean()}

cases["image to text, no floor"] = negatives(False, None, 0)
cases["text to image with ids, no floor"] = negatives(True, ids, 0)

data = {name: {k: array(v) for k, v in case.items()} for name, case in cases.items()}
out = pathlib.Path("ops/contrast/testdata/negatives.json")
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items()) + "\n}\n")
