"""Times the contrast of both directions in PyTorch, with the matrix of all scores, as trainer bench times ours.

    python bench/peer/contrast.py 4096 8192 16384 --dim 64 --threads 2

One line for each number of pairs: milliseconds of forward and backward pass (median of 3) and the peak of resident
memory above that of before, both of a process of its own.
"""

import argparse
import multiprocessing
import resource
import statistics
import time


def measure(n, dim, threads, out):
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    x, y = (F.normalize(torch.randn(n, dim), dim=1).requires_grad_() for _ in range(2))
    labels, before, times = torch.arange(n), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
    for _ in range(4):
        start = time.perf_counter()
        s = x @ y.T / 0.04
        ((F.cross_entropy(s, labels) + F.cross_entropy(s.T, labels)) / 2).backward()
        times.append(1e3 * (time.perf_counter() - start))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    out.put((statistics.median(times[1:]), peak / 1e3))


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("pairs", type=int, nargs="+")
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    context = multiprocessing.get_context("spawn")
    for n in a.pairs:
        out = context.SimpleQueue()
        process = context.Process(target=measure, args=(n, a.dim, a.threads, out))
        process.start()
        process.join()
        ms, mb = out.get()
        print(f"{n} pairs of {a.dim} channels: {ms:.0f} ms, {mb:.0f} MB")
