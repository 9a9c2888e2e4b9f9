"""PyTorch's ViT-B/16 beside BenchmarkEncode of package model: 16 pictures of 224 pixels, random weights, inference.

    python3 bench/peer/encode.py --go       # both, run by run in turns, from the root of the repository

Towers are those of transformers (sdpa) and timm. In bfloat16 PyTorch has the better of bfloat16 weights and of autocast.
Prints the best rate of a run and the ratio of ours to the better of both.
"""
import argparse
import statistics
import time

import timm
import torch
import transformers

from turns import go_benchmark

ROWS = 16


def towers():
    config = transformers.ViTConfig()
    return {"transformers": transformers.ViTModel(config, add_pooling_layer=False).eval(), "timm": timm.create_model("vit_base_patch16_224", num_classes=0).eval()}


def best(run, seconds):
    run()
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return ROWS / least


@torch.inference_mode()
def measure(model, precision, seconds):
    x = torch.rand(ROWS, 3, 224, 224)
    if precision == "fp32":
        return best(lambda: model(x), seconds)

    def cast():
        with torch.autocast("cpu", torch.bfloat16):
            model(x)

    rate = best(cast, seconds)
    half, y = model.bfloat16(), x.bfloat16()
    rate = max(rate, best(lambda: half(y), seconds))
    model.float()
    return rate


def ours(precision):
    """Returns the best pictures a second of BenchmarkEncode."""
    return go_benchmark("./model", f"Encode/{precision}", 4, "pictures/s")[0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3, help="rounds of alternating runs")
    p.add_argument("--seconds", type=float, default=6, help="of a run")
    p.add_argument("--go", action="store_true", help="run BenchmarkEncode too")
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    models = towers()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, timm {timm.__version__}, {o.threads} threads, pictures a second")
    for precision in ("fp32", "bf16"):
        ratios = []
        for _ in range(o.rounds):
            rates = {name: measure(m, precision, o.seconds) for name, m in models.items()}
            line = f"{precision}: " + ", ".join(f"{name} {rate:.2f}" for name, rate in rates.items())
            if o.go:
                own = ours(precision)
                ratios.append(own / max(rates.values()))
                line += f", geoalign {own:.2f}, {ratios[-1]:.2f} times as many"
            print(line, flush=True)
        if ratios:
            print(f"{precision}: median ratio {statistics.median(ratios):.2f}")


main()
