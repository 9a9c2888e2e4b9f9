"""PyTorch's convolutions beside BenchmarkResNet50 of internal/kernel/convolve: the 53 of ResNet-50 with 32 images of 224
pixels, forward, by data and by weights.

    python3 bench/peer/conv.py                # one thread, by the time of the processor
    python3 bench/peer/conv.py --threads 2    # by the time of day, on an idle machine
    python3 bench/peer/conv.py --go           # and BenchmarkResNet50, in turns

Prints the least time of each kind of convolution of three runs in both layouts that PyTorch has, planes (its default) and
channels_last, and the sums over the network, without the gradient of the images, which nobody asks for.
"""
import argparse

import torch

from memory import keep_memory
from turns import clock_of, go_benchmark, least

# Count, size, channels in and out, kernel, stride.
KINDS = [
    (1, 224, 3, 64, 7, 2),
    (1, 56, 64, 64, 1, 1), (3, 56, 64, 64, 3, 1), (4, 56, 64, 256, 1, 1), (2, 56, 256, 64, 1, 1),
    (1, 56, 256, 128, 1, 1), (1, 56, 128, 128, 3, 2), (1, 56, 256, 512, 1, 2),
    (3, 28, 128, 128, 3, 1), (4, 28, 128, 512, 1, 1), (3, 28, 512, 128, 1, 1),
    (1, 28, 512, 256, 1, 1), (1, 28, 256, 256, 3, 2), (1, 28, 512, 1024, 1, 2),
    (5, 14, 256, 256, 3, 1), (6, 14, 256, 1024, 1, 1), (5, 14, 1024, 256, 1, 1),
    (1, 14, 1024, 512, 1, 1), (1, 14, 512, 512, 3, 2), (1, 14, 1024, 2048, 1, 2),
    (2, 7, 512, 512, 3, 1), (3, 7, 512, 2048, 1, 1), (2, 7, 2048, 512, 1, 1),
]
BATCH = 32
PASSES = ("forward", "data", "weights")


def measure(layout, clock, verbose):
    """Returns the seconds of the three passes over the network."""
    sums = [0.0] * 3
    for count, size, cin, cout, kernel, stride in KINDS:
        x = torch.rand(BATCH, cin, size, size).to(memory_format=layout)
        w = torch.rand(cout, cin, kernel, kernel).to(memory_format=layout)
        pad = kernel // 2
        y = torch.nn.functional.conv2d(x, w, stride=stride, padding=pad)
        dy = torch.rand_like(y)

        def backward(mask):
            return torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask)

        times = [
            least(lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad), clock, 3),
            least(lambda: backward([True, False, False]), clock, 3),
            least(lambda: backward([False, True, False]), clock, 3),
        ]
        flops = 2 * y.numel() * cin * kernel * kernel
        if verbose:
            print(f"{count} x {size:3} {cin:4} to {cout:4}, {kernel} by {kernel} every {stride}",
                  "  ".join(f"{1e3 * t:6.1f} ms {1e-9 * flops / t:4.0f} GFLOP/s" for t in times), flush=True)
        if cin == 3:
            times[1] = 0
        sums = [s + count * t for s, t in zip(sums, times)]
    return sums


def ours(threads):
    """Returns the seconds of BenchmarkResNet50."""
    return [ms / 1e3 for ms in go_benchmark("./internal/kernel/convolve", f"ResNet50/threads={threads}", 1, *(f"ms/{p}" for p in PASSES))]


def line(name, sums):
    print(f"{name:14}", "  ".join(f"{p} {1e3 * s:6.0f} ms" for p, s in zip(PASSES, sums)), f"  all {1e3 * sum(sums):6.0f} ms", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=1, help="rounds of alternating runs")
    p.add_argument("--verbose", action="store_true", help="a line for each kind")
    p.add_argument("--go", action="store_true", help="run BenchmarkResNet50 too, from the root of the repository")
    o = p.parse_args()
    keep_memory()
    torch.set_num_threads(o.threads)
    clock = clock_of(o.threads)
    for _ in range(o.rounds):
        best = float("inf")
        for name, layout in (("planes", torch.contiguous_format), ("channels_last", torch.channels_last)):
            sums = measure(layout, clock, o.verbose)
            line(name, sums)
            best = min(best, sum(sums))
        if o.go:
            own = ours(o.threads)
            line("geoalign", own)
            print(f"the better of PyTorch's / geoalign: {best / sum(own):.2f}")


main()
