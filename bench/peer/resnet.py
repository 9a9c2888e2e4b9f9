"""torchvision's ResNet-50 beside BenchmarkResNet of package model: 32 pictures of 224 pixels, random weights, a step of training
(forward and backward) and inference, in float32.

    python3 bench/peer/resnet.py                # one thread, by the time of the processor
    python3 bench/peer/resnet.py --threads 2    # by the time of day, on an idle machine
    python3 bench/peer/resnet.py --go           # and BenchmarkResNet, run by run in turns, from the root of the repository

PyTorch runs in both layouts that it has, planes (its default) and channels_last; inference is of the module as it is and of one whose
batch norms are folded by torch.fx. Prints the best milliseconds of a run and how many times as fast ours is as the better of PyTorch's.
"""
import argparse
import statistics

import torch
import torchvision
from torch.fx.experimental.optimization import fuse

from memory import keep_memory
from turns import clock_of, go_benchmark, least

ROWS = 32


def measure(mode, clock, runs):
    """Returns the best milliseconds of each way that PyTorch has."""
    torch.manual_seed(1)
    times = {}
    for name, layout in (("planes", torch.contiguous_format), ("channels_last", torch.channels_last)):
        model = torchvision.models.resnet50(weights=None).to(memory_format=layout)
        model.fc = torch.nn.Identity()
        x = torch.randn(ROWS, 3, 224, 224).to(memory_format=layout)
        if mode == "train":
            def step():
                model.zero_grad(set_to_none=True)
                model(x).square().sum().backward()

            times[name] = 1e3 * least(step, clock, runs)
            continue
        model.eval()
        with torch.inference_mode():
            times[name] = 1e3 * least(lambda: model(x), clock, runs)
        folded = fuse(model)
        with torch.inference_mode():
            times[name + ", folded"] = 1e3 * least(lambda: folded(x), clock, runs)
    return times


def ours(mode, threads, runs):
    """Returns the best milliseconds of so many runs of BenchmarkResNet behind a first one."""
    return go_benchmark("./model", f"ResNet/{mode}/threads={threads}", runs + 1, "ms/best")[0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3, help="rounds of alternating runs")
    p.add_argument("--runs", type=int, default=3, help="runs of a round")
    p.add_argument("--go", action="store_true", help="run BenchmarkResNet too")
    o = p.parse_args()
    keep_memory()
    torch.set_num_threads(o.threads)
    clock = clock_of(o.threads)
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, {o.threads} threads, milliseconds")
    for mode in ("train", "encode"):
        ratios = []
        for _ in range(o.rounds):
            times = measure(mode, clock, o.runs)
            line = f"{mode}: " + ", ".join(f"{name} {ms:.0f}" for name, ms in times.items())
            if o.go:
                own = ours(mode, o.threads, o.runs)
                ratios.append(min(times.values()) / own)
                line += f"; geoalign {own:.0f}, {ratios[-1]:.2f} times as fast as the better one"
            print(line, flush=True)
        if ratios:
            print(f"{mode}: median ratio {statistics.median(ratios):.2f}")


main()
