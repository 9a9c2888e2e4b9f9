"""The steps of VSE-infinity and SCAN in PyTorch beside `trainer bench`, at their published sizes: batch 128, 36 regions of
2048 features, captions of 14 words with <start> and <end>, GRU in both directions of 1,024 channels, Adam.

    python3 bench/peer/hosts.py --go       # both, run by run in turns, from the root of the repository (make build before)

SCAN is there twice: in the loop over captions of the published code, and as a PyTorch user would write it for speed, with all
pairs of a batch at once, as many captions at a time as memory allows. Prints samples a second of the middle step, and the ratio of ours to the best of PyTorch.
"""
import argparse
import json
import subprocess
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

import cross
from memory import keep_memory

BATCH, REGIONS, IN, WORDS, EMBEDDING, WIDTH, VOCABULARY = 128, 36, 2048, 14, 300, 1024, 8481


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, EMBEDDING)
        self.gru = nn.GRU(EMBEDDING, WIDTH, batch_first=True, bidirectional=True)

    def forward(self, words):
        y, _ = self.gru(self.embed(words))  # all captions have one length, so that there is nothing to pack
        return (y[..., :WIDTH] + y[..., WIDTH:]) / 2


class GPO(nn.Module):
    """Generalised pooling: weights of ranks by a GRU over their places."""

    def __init__(self, length, d=32):
        super().__init__()
        place, k = torch.arange(length)[:, None], torch.exp(torch.arange(0, d, 2) * (-torch.log(torch.tensor(10000.0)) / d))
        table = torch.zeros(length, d)
        table[:, 0::2], table[:, 1::2] = torch.sin(place * k), torch.cos(place * k)
        self.register_buffer("table", table)
        self.gru, self.linear = nn.GRU(d, d, batch_first=True, bidirectional=True), nn.Linear(d, 1, bias=False)

    def forward(self, x):
        n, length, _ = x.shape
        y, _ = self.gru(self.table[None, :length].expand(n, -1, -1))
        y = (y[..., :32] + y[..., 32:]) / 2
        w = torch.softmax(self.linear(y) / 0.1, 1)
        return (x.sort(dim=1, descending=True).values * w).sum(1)


class VSEInfinity(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = Text()
        self.fc, self.fc1, self.fc2 = nn.Linear(IN, WIDTH), nn.Linear(IN, WIDTH // 2), nn.Linear(WIDTH // 2, WIDTH, bias=False)
        self.pool, self.pool_text = GPO(REGIONS), GPO(WORDS)

    def forward(self, regions, words):
        x = self.fc(regions) + self.fc2(F.relu(self.fc1(regions)))
        kept = torch.rand(BATCH, REGIONS).argsort(1)[:, : int(0.8 * REGIONS)]  # as the published code, which makes the image smaller
        x = torch.gather(x, 1, kept[..., None].expand(-1, -1, WIDTH))
        return F.normalize(self.pool(x), dim=1) @ F.normalize(self.pool_text(self.text(words)), dim=1).T


def attend_all(images, texts, captions=16):
    """Scores from text to image of all pairs, some captions at a time."""
    columns = []
    for y in texts.split(captions):
        s = F.leaky_relu(torch.einsum("nrc,mwc->nmrw", images, y), 0.1)
        p = torch.softmax(9.0 * s / (s.norm(dim=3, keepdim=True) + 1e-8), dim=2)
        context = torch.einsum("nmrw,nrc->nmwc", p, images)
        row = (context * y).sum(3) / (context.norm(dim=3) * y.norm(dim=2)).clamp(min=1e-8)
        columns.append(torch.logsumexp(6.0 * row, 2) / 6.0)
    return torch.cat(columns, 1)


class SCAN(nn.Module):
    def __init__(self, loop):
        super().__init__()
        self.text, self.fc, self.loop = Text(), nn.Linear(IN, WIDTH), loop

    def forward(self, regions, words):
        x, y = F.normalize(self.fc(regions), dim=2), F.normalize(self.text(words), dim=2)
        return cross.scores(x, y, [WORDS] * BATCH, False) if self.loop else attend_all(x, y)


def hinge(s):
    right = s.diag()
    off = ~torch.eye(len(s), dtype=torch.bool)
    texts = ((0.2 + s - right[:, None]).clamp(min=0) * off).max(1).values
    images = ((0.2 + s - right[None]).clamp(min=0) * off).max(0).values
    return texts.sum() + images.sum()


def measure(build, precision, steps):
    """Returns samples a second of the median of some steps."""
    torch.manual_seed(1)
    model = build()
    optimiser = torch.optim.Adam(model.parameters(), 2e-4, foreach=True)
    regions, words = torch.rand(BATCH, REGIONS, IN), torch.randint(0, VOCABULARY, (BATCH, WORDS))
    times = []
    for i in range(steps + 1):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            scores = model(regions, words)
        optimiser.zero_grad(set_to_none=True)
        hinge(scores.float()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimiser.step()
        if i > 0:
            times.append(time.perf_counter() - start)
    return BATCH / statistics.median(times)


def ours(name, precision, steps, threads):
    command = ["bin/trainer", "bench", "--config", f"configs/bench/gssf-{name}.toml", "--set", f"compute.precision={precision}", "--set", f"compute.threads={threads}",
               "--steps", str(steps), "--warmup", "1", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["samples_per_second"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3, help="rounds of alternating runs")
    p.add_argument("--steps", type=int, default=4, help="of a run")
    p.add_argument("--precisions", default="fp32,bf16")
    p.add_argument("--go", action="store_true", help="run trainer bench too")
    o = p.parse_args()
    keep_memory()
    torch.set_num_threads(o.threads)
    print(f"torch {torch.__version__}, {o.threads} threads, samples a second")
    peers = {"vseinf": {"PyTorch": VSEInfinity}, "scan": {"published loop": lambda: SCAN(True), "all pairs": lambda: SCAN(False)}}
    for name, builds in peers.items():
        for precision in o.precisions.split(","):
            ratios = []
            for _ in range(o.rounds):
                rates = {peer: measure(build, precision, o.steps) for peer, build in builds.items()}
                line = f"{name} {precision}: " + ", ".join(f"{peer} {rate:.1f}" for peer, rate in rates.items())
                if o.go:
                    own = ours(name, precision, o.steps, o.threads)
                    ratios.append(own / max(rates.values()))
                    line += f", geoalign {own:.1f}, {ratios[-1]:.2f} times as many"
                print(line, flush=True)
            if ratios:
                print(f"{name} {precision}: median ratio {statistics.median(ratios):.2f}", flush=True)


main()
