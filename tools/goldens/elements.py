"""Values for ops/elements_golden_test.go.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/elements.py

It writes ops/testdata/elements.json. Every number comes from torch in float64 on
inputs that are exact in float32; gradients are those of sum(out*dy). Last run with
torch 2.15.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

from cases import array, rand


gen = torch.Generator().manual_seed(2)
cases = {}


def case(name, run, ints=None, dys=None, **inputs):
    """Adds run's output and the gradients of all inputs; ints have none."""
    ints = ints or {}
    leaves = {k: v.clone().requires_grad_() for k, v in inputs.items()}
    out = run(**leaves, **ints)
    entry = {k: array(v) for k, v in {**inputs, **ints}.items()}
    if out.dim() > 0:
        dy = rand(dys or gen, *out.shape)
        entry["dy"] = array(dy)
        (out * dy).sum().backward()
    else:
        out.backward()
    entry["out"] = array(out)
    for k, v in leaves.items():
        entry["d" + k] = array(v.grad)
    cases[name] = entry


case("add", lambda x, z: x + z, x=rand(gen, 3, 4), z=rand(gen, 3, 4))
case("linear", F.linear, input=rand(gen, 5, 4), weight=rand(gen, 3, 4), bias=rand(gen, 3))
case("linear without bias", F.linear, input=rand(gen, 5, 4), weight=rand(gen, 3, 4))
case(
    "layer norm",
    lambda x, gamma, beta: F.layer_norm(x, (7,), gamma, beta, 1e-5),
    x=rand(gen, 4, 7), gamma=rand(gen, 7), beta=rand(gen, 7),
)
case("layer norm of equal values", lambda x, gamma, beta: F.layer_norm(x, (3,), gamma, beta, 1e-2),
     x=torch.ones(2, 3).double(), gamma=rand(gen, 3), beta=rand(gen, 3))
case("gelu", F.gelu, input=torch.cat([rand(gen, 30), torch.tensor([0, -4, 4, -9, 9]).double()]))
case("embed", lambda table, ids: F.embedding(ids, table), {"ids": torch.tensor([4, 0, 0, 2, 4, 4])}, table=rand(gen, 5, 3))
case(
    "gather rows",
    lambda x, ids: x.reshape(3, 2, 4)[ids].reshape(-1, 4),
    {"ids": torch.tensor([2, 0, 2, 2])}, x=rand(gen, 6, 4),
)
case("add positions", lambda x, table: (x.reshape(3, 2, 4) + table[:2]).reshape(6, 4), x=rand(gen, 6, 4), table=rand(gen, 5, 4))
case("l2 normalize", lambda x: F.normalize(x, dim=-1, eps=1e-12), x=rand(gen, 4, 5))
short = rand(gen, 3, 5)
short[1] /= 1024
case("l2 normalize of a short row", lambda x: F.normalize(x, dim=-1, eps=0.125), x=short)


def conv(x, weight):
    """A patch embedding: what a linear layer on the patches must reproduce."""
    return F.conv2d(x, weight.reshape(-1, 3, 2, 2), stride=2).flatten(2).transpose(1, 2).reshape(-1, weight.shape[0])


case("patch embedding", conv, x=rand(gen, 2, 3, 4, 6), weight=rand(gen, 5, 12))


def prepend(x, token):
    token = token.reshape(1, -1, 4).expand(3, -1, -1)
    return torch.cat([token, x.reshape(3, 2, 4)], 1).reshape(-1, 4)


case("prepend token", prepend, x=rand(gen, 6, 4), token=rand(gen, 4))
case("prepend tokens", prepend, x=rand(gen, 6, 4), token=rand(gen, 2, 4))
case("strided rows", lambda x: x[1:8:3], x=rand(gen, 9, 2))
case("sum", torch.sum, input=rand(gen, 3, 4))
case("mean", torch.mean, input=rand(gen, 3, 4))
case("weighted sum", lambda x, z: 0.25 * x - 3 * z, x=rand(gen)[()], z=rand(gen)[()])


def pack(mask):
    """Rows (R, D) of bools as int32 words, element j as bit j%32 of word j/32."""
    words = []
    for row in mask.tolist():
        for at in range(0, len(row), 32):
            w = sum(1 << j for j, keep in enumerate(row[at : at + 32]) if keep)
            words.append(w - (1 << 32) if w >= 1 << 31 else w)
    return torch.tensor(words)


for name, columns in (("dropout", 37), ("dropout of whole words", 64)):
    mask = torch.rand(3, columns, generator=gen) < 0.75
    case(name, lambda x, bits, mask=mask: x * mask / 0.75, {"bits": pack(mask)}, x=rand(gen, 3, columns))
case("detach", lambda x: F.gelu(x) * 2 + F.gelu(x).detach(), x=rand(gen, 3, 4))
case("div scalar", lambda x, s: x / s, x=rand(gen, 3, 4), s=torch.tensor(0.078125).double())
case("mul scalar", lambda x, s: x * s, x=rand(gen, 2, 3, 2), s=torch.tensor(-1.625).double())


def similarity(f, keys, queue=None, cols=None):
    """[f keys^T | f queue^T], with zeros for the columns that do not exist."""
    out = f @ (keys if queue is None else torch.cat([keys, queue])).T
    return out if cols is None else out * (torch.arange(out.shape[1]) < cols)


f, keys, queue = rand(gen, 3, 5), rand(gen, 4, 5), rand(gen, 6, 5)
case("similarity", similarity, f=f, keys=keys)
case("similarity with a queue", similarity, {"queue": queue}, f=f, keys=keys)
case("similarity with a part of the queue", similarity, {"queue": queue, "cols": torch.tensor(7)}, f=f, keys=keys)
case("similarity with a part of the keys", similarity, {"queue": queue, "cols": torch.tensor(2)}, f=f, keys=keys)


def add_norm(h, x, gamma, beta, bits, mask, both):
    """LN(x + dropout(h)), plus gelu(x + dropout(h)) if both are read."""
    total = x + h * mask / 0.75
    norm = F.layer_norm(total, (37,), gamma, beta, 1e-5)
    return norm + F.gelu(total) if both else norm


for name, both in (("add norm", False), ("add norm, both read", True)):
    mask = torch.rand(3, 37, generator=gen) < 0.75
    case(
        name, lambda mask=mask, both=both, **inputs: add_norm(mask=mask, both=both, **inputs), {"bits": pack(mask)},
        h=rand(gen, 3, 37), x=rand(gen, 3, 37), gamma=rand(gen, 37), beta=rand(gen, 37),
    )
more = torch.Generator().manual_seed(3)
for name, run, bias in (
    ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), True),
    ("quick_gelu", lambda x: x * torch.sigmoid(1.702 * x), True),
    ("silu", F.silu, False),
):
    extra = {"bias": rand(more, 6)} if bias else {}
    case(name, lambda run=run, **inputs: run(F.linear(**inputs)), dys=more, input=2 * rand(more, 5, 4), weight=rand(more, 6, 4), **extra)
case("swiglu", lambda x: F.silu(x[:, :5]) * x[:, 5:], dys=more, x=3 * rand(more, 4, 10))
case("scale columns", lambda x, scale: x * scale, dys=more, x=rand(more, 5, 4), scale=rand(more, 4))
case("repeat rows", lambda x: x.repeat(3, 1), dys=more, x=rand(more, 2, 4))
case("mean tokens", lambda x, lengths: torch.stack([x[3 * i : 3 * i + n].mean(0) for i, n in enumerate(lengths.tolist())]),
     {"lengths": torch.tensor([3, 1, 2])}, dys=more, x=rand(more, 9, 4))
case("mean patches", lambda x: x.reshape(3, 3, 4)[:, 1:].mean(1), dys=more, x=rand(more, 9, 4))
# Some at the ends, which clamp replaces by 1 - 1e-6 as float32 has it.
limit = 1 - 17 * 2.0**-24

regions = torch.Generator().manual_seed(4)
LENGTHS = torch.tensor([3, 1, 2])


def each(f, *xs):
    """f of the rows of each sequence that count."""
    return [f(*(x[3 * i : 3 * i + n] for x in xs)) for i, n in enumerate(LENGTHS.tolist())]


case("max tokens", lambda x, lengths: torch.stack(each(lambda x: x.amax(0), x)), {"lengths": LENGTHS}, dys=regions, x=rand(regions, 9, 4))
case("sort pool", lambda x, scores, lengths: torch.stack(each(
    lambda x, s: (x.sort(0, descending=True)[0] * torch.softmax(s / 0.5, 0)).sum(0), x, scores)),
     {"lengths": LENGTHS}, dys=regions, x=rand(regions, 9, 4), scores=rand(regions, 9, 1))
case("affinity", lambda q, k, v, lengths: torch.cat([F.pad(y, (0, 0, 0, 3 - len(y))) for y in each(lambda q, k, v: q @ k.T @ v / len(q), q, k, v)]),
     {"lengths": LENGTHS}, dys=regions, q=rand(regions, 9, 4), k=rand(regions, 9, 4), v=rand(regions, 9, 5))


def batch_norm(x, gamma, beta, mean=None, variance=None):
    """nn.BatchNorm1d with these values, in training or, of given statistics, in inference."""
    m = torch.nn.BatchNorm1d(x.shape[1]).double().train(mean is None)
    buffers = {} if mean is None else {"running_mean": mean, "running_var": variance}
    return torch.func.functional_call(m, {"weight": gamma, "bias": beta, **buffers}, (x,))


def counted(x, *rest):
    """batch_norm of the rows that count, with rows of 0 in the places of the others."""
    y = torch.zeros_like(x)
    places = torch.cat(each(lambda i: i, torch.arange(9)))
    return y.index_put((places,), batch_norm(x[places], *rest))


norms = torch.Generator().manual_seed(8)
affine = {"gamma": rand(norms, 4), "beta": rand(norms, 4)}
given = {"mean": rand(norms, 4), "variance": rand(norms, 4) ** 2 + 0.25}
case("batch norm", batch_norm, dys=norms, x=rand(norms, 9, 4) + 2, **affine)
case("batch norm of rows that count", lambda lengths, **x: counted(*x.values()), {"lengths": LENGTHS}, dys=norms, x=rand(norms, 9, 4) + 2, **affine)
case("batch norm by given statistics", lambda mean, variance, **x: batch_norm(*x.values(), mean, variance),
     given, dys=norms, x=rand(norms, 9, 4) + 2, **affine)
last = torch.Generator().manual_seed(5)
case("tanh", torch.tanh, dys=last, input=rand(last, 5, 4))
tuning = torch.Generator().manual_seed(5)
case("scale shift", lambda x, scale, shift: x * scale[1:5] + shift[1:5], dys=tuning, x=rand(tuning, 5, 4), scale=rand(tuning, 6), shift=rand(tuning, 6))

soft = torch.Generator().manual_seed(9)
case("soft pool", lambda x, scores, lengths: torch.stack(each(lambda x, s: (x * torch.softmax(s, 0)).sum(0), x, scores)),
     {"lengths": LENGTHS}, dys=soft, x=rand(soft, 9, 4), scores=rand(soft, 9, 4))

worst = torch.Generator().manual_seed(10)
case("worst", lambda x, z: torch.where(torch.eye(4) > 0.5, torch.minimum(x, z), torch.maximum(x, z)), dys=worst,
     x=rand(worst, 4, 4) + 1 / 128, z=rand(worst, 4, 4))

products = torch.Generator().manual_seed(11)
case("sum products", lambda x, z: (x * z).reshape(4, 2, 3).sum(1), dys=products, x=rand(products, 4, 6), z=rand(products, 4, 6))
case("dot products of rows", lambda x, z: (x * z).sum(1, keepdim=True), dys=products, x=rand(products, 4, 6), z=rand(products, 4, 6))
case("outer", lambda x, z: torch.einsum("rm,rn->rmn", x, z).flatten(1), dys=products, x=rand(products, 4, 2), z=rand(products, 4, 3))

pairs = torch.Generator().manual_seed(11)
case("row products", lambda x, z: (x.reshape(2, 3, 4) * z[:, None]).sum(2).flatten(), dys=pairs, x=rand(pairs, 6, 4), z=rand(pairs, 2, 4))
case("margin", lambda x, z, weights: ((0.5 - x + z).clamp(min=0) * weights).sum() / weights.sum(), {"weights": torch.tensor([1.0, 0, 2, 1, 1]).double()},
     x=rand(pairs, 5), z=rand(pairs, 5))

out = pathlib.Path("ops/testdata/elements.json")
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
