"""The published loops of SCAN beside BenchmarkCross of ops/interaction: 36 regions, captions of 12
words in the mean, 1,024 channels, 128 x 128 pairs forward and backward, on one thread.

    python3 bench/peer/cross.py                # PyTorch alone
    python3 bench/peer/cross.py --go           # and BenchmarkCross, run by run in turns

Prints best seconds of a step and the ratio of each round. With --eval the scores of 1,000 images
with a few texts are timed too, and scaled to 5,000 texts.
"""
import argparse
import re
import statistics
import subprocess
import time

import torch
from torch.nn import functional as F

from memory import keep_memory

REGIONS, WORDS, C = 36, 30, 1024


def length(i):
    return min(WORDS, 4 + 27 * (37 * i % 128) * ((53 * i + 29) % 128) // 16129 * 13 // 10)


def l2norm(x, dim, eps=1e-8):
    return x / (torch.pow(x, 2).sum(dim=dim, keepdim=True).sqrt() + eps)


def attend(query, context, smooth):
    """func_attention of the published code with clipped_l2norm: contexts (B, queries, C)."""
    attn = torch.bmm(context, query.transpose(1, 2))
    attn = l2norm(F.leaky_relu(attn, 0.1), 2).transpose(1, 2).contiguous()
    attn = torch.softmax(attn * smooth, dim=2)
    return torch.bmm(context.transpose(1, 2), attn.transpose(1, 2)).transpose(1, 2)


def cosine(x, y):
    dot = torch.sum(x * y, 2)
    return dot / (torch.norm(x, 2, 2) * torch.norm(y, 2, 2)).clamp(min=1e-8)


def scores(images, texts, lengths, i2t):
    columns = []
    for j, n in enumerate(lengths):
        words = texts[j, :n].unsqueeze(0).repeat(len(images), 1, 1)
        if i2t:
            row, pool = cosine(images, attend(images, words, 4.0)), 5.0
        else:
            row, pool = cosine(words, attend(words, images, 9.0)), 6.0
        columns.append(torch.log(torch.exp(row * pool).sum(1, keepdim=True)) / pool)
    return torch.cat(columns, 1)


def data(n, m):
    torch.manual_seed(1)
    return (F.normalize(torch.randn(n, REGIONS, C), dim=2), F.normalize(torch.randn(m, WORDS, C), dim=2), [length(i) for i in range(m)])


def step(i2t):
    images, texts, lengths = data(128, 128)
    images.requires_grad_(), texts.requires_grad_()
    start = time.process_time()
    out = scores(images, texts, lengths, i2t)
    out.backward(torch.rand_like(out))
    return time.process_time() - start


@torch.no_grad()
def evaluate(i2t, some=40):
    images, texts, lengths = data(1000, some)
    start = time.process_time()
    scores(images, texts, lengths, i2t)
    return (time.process_time() - start) * sum(length(i) for i in range(5000)) / sum(lengths)


def ours(way, size):
    out = subprocess.run(["go", "test", "./ops/interaction", "-run", "^$", "-bench", f"BenchmarkCross/{way}/{size}$", "-benchtime", "1x"],
                         check=True, capture_output=True, text=True).stdout
    return float(re.search(r"([\d.]+) s/best", out)[1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--go", action="store_true")
    p.add_argument("--eval", action="store_true")
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    keep_memory()
    torch.set_num_threads(1)
    for size, run in [("128x128", step)] + ([("1000x5000", evaluate)] if a.eval else []):
        for way in "t2i", "i2t":
            ratios = []
            for _ in range(a.rounds):
                theirs = run(way == "i2t")
                line = f"{way} {size}: PyTorch {theirs:.2f} s"
                if a.go:
                    own = ours(way, size)
                    ratios.append(theirs / own)
                    line += f", geoalign {own:.2f} s, ratio {ratios[-1]:.2f}"
                print(line, flush=True)
            if ratios:
                print(f"{way} {size}: median ratio {statistics.median(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
