"""Values for ops/attention/golden_test.go and ops/contrast/crossentropy_golden_test.go.

Run with a Python that has torch and transformers, from the root of the repository:

    python tools/goldens/attention.py

It writes ops/attention/testdata/attention.json and ops/contrast/testdata/crossentropy.json. Every
number comes from torch in float64 on inputs that are exact in float32. Last run with
torch 2.15 and transformers 5.23.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from cases import array, rand

OUT = {"attention": pathlib.Path("ops/attention/testdata"), "crossentropy": pathlib.Path("ops/contrast/testdata")}


def pack(mask):
    """Dropout mask (..., L) of bools as int32 words, bit j%32 of word j/32."""
    words = []
    for row in mask.reshape(-1, mask.shape[-1]).tolist():
        for at in range(0, len(row), 32):
            w = sum(1 << j for j, keep in enumerate(row[at : at + 32]) if keep)
            words.append(w - (1 << 32) if w >= 1 << 31 else w)
    return torch.tensor(words)


def attend(q, k, v, lengths, mask, keep):
    """torch's own attention; with a dropout mask, its definition."""
    lk = k.shape[-2]
    seen = torch.arange(lk)[None, :] < lengths[:, None]
    seen = seen[:, None, None, :]
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    p = s.masked_fill(~seen, -math.inf).softmax(-1)
    return (p * mask / keep) @ v


def attention():
    gen = torch.Generator().manual_seed(1)
    cases = {}
    rows, l, heads, e, keep = 2, 5, 2, 4, 0.75
    d = heads * e
    for name, dropout in (("self", False), ("self dropout", True)):
        qkv = rand(gen, rows * l, 3 * d).requires_grad_()
        lengths = torch.tensor([5, 3])
        mask = torch.rand(rows, heads, l, l, generator=gen) < keep if dropout else None
        parts = [x.reshape(rows, l, heads, e).transpose(1, 2) for x in qkv.split(d, dim=1)]
        out = attend(*parts, lengths, mask, keep).transpose(1, 2).reshape(rows * l, d)
        dy = rand(gen, *out.shape)
        out.backward(dy)
        cases[name] = {"qkv": qkv, "lengths": lengths, "dy": dy, "out": out, "dqkv": qkv.grad}
        if dropout:
            cases[name]["bits"] = pack(mask)
    lq, lk, seqs = 3, 34, 2
    for name, dropout in (("cross", False), ("cross dropout", True)):
        q, kv = rand(gen, 3 * lq, d).requires_grad_(), rand(gen, seqs * lk, 2 * d).requires_grad_()
        index, lengths = torch.tensor([1, 0, 1]), torch.tensor([34, 33, 7])
        mask = torch.rand(3, heads, lq, lk, generator=gen) < keep if dropout else None
        qs = q.reshape(3, lq, heads, e).transpose(1, 2)
        ks, vs = [x.reshape(seqs, lk, heads, e)[index].transpose(1, 2) for x in kv.split(d, dim=1)]
        out = attend(qs, ks, vs, lengths, mask, keep).transpose(1, 2).reshape(3 * lq, d)
        dy = rand(gen, *out.shape)
        out.backward(dy)
        cases[name] = {"q": q, "kv": kv, "index": index, "lengths": lengths, "dy": dy, "out": out, "dq": q.grad, "dkv": kv.grad}
        if dropout:
            cases[name]["bits"] = pack(mask)
    for name, causal in (("bias", False), ("causal", True)):
        qkv, bias = rand(gen, rows * l, 3 * d).requires_grad_(), rand(gen, heads, l, l).requires_grad_()
        lengths = torch.tensor([5, 3])
        seen = (torch.arange(l)[None, :] < lengths[:, None])[:, None, None, :]
        if causal:
            seen = seen & torch.ones(l, l).bool().tril()
        parts = [x.reshape(rows, l, heads, e).transpose(1, 2) for x in qkv.split(d, dim=1)]
        added = bias + torch.zeros(rows, 1, l, l).double().masked_fill(~seen, -math.inf)
        out = F.scaled_dot_product_attention(*parts, attn_mask=added).transpose(1, 2).reshape(rows * l, d)
        dy = rand(gen, *out.shape)
        out.backward(dy)
        cases[name] = {"qkv": qkv, "bias": bias, "lengths": lengths, "dy": dy, "out": out, "dqkv": qkv.grad, "dbias": bias.grad}
    # Buckets by transformers' MPNet, distances beyond the farthest included.
    table = rand(gen, 32, 1).requires_grad_()
    at = torch.arange(140)
    out = table[MPNetEncoder.relative_position_bucket(at[None, :] - at[:, None])].permute(2, 0, 1)
    dy = rand(gen, 1, 140, 140) / 16
    out.backward(dy)
    cases["relative bias"] = {"table": table, "dy": dy, "out": out, "dtable": table.grad}
    return cases


def crossentropy():
    gen = torch.Generator().manual_seed(2)
    cases = {}
    rows, cols, count = 5, 9, 7
    labels = torch.tensor([3, -100, 0, 6, 2])
    for name, alpha, n in (("hard", None, cols), ("distilled", 0.4, cols), ("distilled, columns", 0.25, count)):
        s = (2 * rand(gen, rows, cols)).requires_grad_()
        loss = F.cross_entropy(s[:, :n], labels, ignore_index=-100)
        case = {"logits": s, "labels": labels}
        if alpha is not None:
            t = 2 * rand(gen, rows, cols)
            soft = -(t[:, :n].softmax(1) * s[:, :n].log_softmax(1)).sum(1)
            loss = (1 - alpha) * loss + alpha * soft[labels != -100].mean()
            case |= {"teacher": t, "alpha": torch.tensor(alpha).double()}
        if n < cols:
            case["cols"] = torch.tensor(n)
        loss.backward()
        cases[name] = case | {"out": loss, "dlogits": s.grad}
    # Multi-positive targets as in ALBEF's retrieval fine-tuning: ids of batch and queue.
    row_ids, col_ids = torch.tensor([7, 3, 7]), torch.tensor([7, 3, 7, -100, 3, 7, 7])
    s, t, alpha = (2 * rand(gen, 3, 7)).requires_grad_(), 2 * rand(gen, 3, 7), 0.4
    pos = (row_ids[:, None] == col_ids[None, :]).double()
    y = alpha * t.softmax(1) + (1 - alpha) * pos / pos.sum(1, keepdim=True)
    loss = -(s.log_softmax(1) * y).sum(1).mean()
    loss.backward()
    cases["ids"] = {"logits": s, "rowIDs": row_ids, "colIDs": col_ids, "teacher": t, "alpha": torch.tensor(alpha).double(), "out": loss, "dlogits": s.grad}
    return cases


def main():
    for name, cases in (("attention", attention()), ("crossentropy", crossentropy())):
        data = {case: {key: array(x) for key, x in arrays.items()} for case, arrays in cases.items()}
        (OUT[name] / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
