"""PyTorch's nn.GRU beside BenchmarkGRU of ops/recurrent: 128 packed captions, words of 300
channels, states of 1,024 in both directions, forward and backward.

    python3 bench/peer/gru.py                # one thread, by the time of the processor
    python3 bench/peer/gru.py --threads 2    # by the time of day, on an idle machine
    python3 bench/peer/gru.py --go           # and BenchmarkGRU, run by run in turns

Prints the best time of a step and the rate of the products that the words take, beside that of
one large product measured in turns with it.
"""
import argparse
import statistics

import torch

from memory import keep_memory
from turns import clock_of, go_benchmark

IN, H, L = 300, 1024, 30
STEPS = 5  # of a run, on both sides
LENGTHS = [30 if i == 0 else 6 + 26 * (37 * i % 128) * ((53 * i + 29) % 128) // 16129 for i in range(128)]


def measure(precision, threads):
    """Returns best seconds of a step and best GFLOP/s of a large product."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    clock = clock_of(threads)
    gru = torch.nn.GRU(IN, H, batch_first=True, bidirectional=True)
    x = torch.rand(len(LENGTHS), L, IN).requires_grad_()
    lengths = torch.tensor(LENGTHS)
    a, b = torch.rand(1536, 1024), torch.rand(1024, 3072)
    if precision == "bf16":
        a, b = a.bfloat16(), b.bfloat16()
    dy = torch.rand(len(LENGTHS), L, H)
    step, product = float("inf"), 0.0
    for _ in range(STEPS):
        gru.zero_grad(set_to_none=True)
        x.grad = None
        start = clock()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, _ = torch.nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True)
            out = out[:, :, :H] + out[:, :, H:]
        out.backward(dy.to(out.dtype))
        middle = clock()
        a @ b
        end = clock()
        step, product = min(step, middle - start), max(product, 2e-9 * 1536 * 1024 * 3072 / (end - middle))
    return step, product


def ours(precision, threads):
    """Returns best seconds of as many steps of BenchmarkGRU."""
    name = f"BenchmarkGRU/{precision}/{'thread' if threads == 1 else 'threads'}"
    return go_benchmark("./ops/recurrent", name, STEPS, "ms/best")[0] / 1e3


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3, help="rounds of alternating runs")
    p.add_argument("--go", action="store_true", help="run BenchmarkGRU too, from the root of the repository")
    o = p.parse_args()
    keep_memory()
    flops = 2 * 3 * 6 * sum(LENGTHS) * H * (IN + H)
    for precision in ("fp32", "bf16"):
        ratios = []
        for _ in range(o.rounds):
            step, product = measure(precision, o.threads)
            line = f"{precision}: torch {1e3 * step:.0f} ms, {1e-9 * flops / step:.0f} GFLOP/s, a product {product:.0f}"
            if o.go:
                own = ours(precision, o.threads)
                ratios.append(step / own)
                line += f"; geoalign {1e3 * own:.0f} ms, {1e-9 * flops / own:.0f} GFLOP/s, {ratios[-1]:.2f} times as fast"
            print(line, flush=True)
        if ratios:
            print(f"{precision}: median ratio {statistics.median(ratios):.2f}")


main()
