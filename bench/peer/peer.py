"""A training step in PyTorch, timed.

  python bench/peer/peer.py --config configs/bench/albef-small.toml --precision bf16
  python bench/peer/peer.py --check

Reads the same TOML files as trainer bench, trains on random data of the same shapes and
prints one line of JSON.
"""
import argparse
import json
import math
import os
import resource
import statistics
import sys
import time

import torch

sys.dont_write_bytecode = True
import albef  # noqa: E402, the files beside this one
import clip  # noqa: E402
import heads  # noqa: E402
from memory import keep_memory  # noqa: E402
import settings  # noqa: E402
import towers  # noqa: E402

FAMILIES = {"albef": albef.ALBEF, "clip": clip.CLIP, "heads": heads.Heads}


def build(c, layout):
    """The model that the settings mean, in a layout that it has."""
    kind = settings.family(c)
    if kind not in FAMILIES:
        sys.exit(f"model.system = {kind!r} has no peer: have {', '.join(FAMILIES)}")
    family = FAMILIES[kind]
    return family(c, layout if layout in family.layouts else "merged")


def optimizer_of(m, o):
    params = [p for p in m.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in params if p.dim() > 1], "weight_decay": o["decay"]},
        {"params": [p for p in params if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], fused=True)


def autocast(precision):
    return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")


def bench(c, a):
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    at_start = peak_mb()
    m = build(c, a.layout)
    if a.compile:
        towers.compile_layers(m)
    optimizer, batch, b = optimizer_of(m, c["optimizer"]), m.random_batch(), c["train"]["batch_size"]

    def step():
        with autocast(a.precision):
            out = m(**batch)
        out[0].backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        m.after_update(out)
        return out[0].item(), [p.item() for p in out[1].values()]

    begin = time.perf_counter()
    for _ in range(a.warmup):
        step()
    warmup, times = time.perf_counter() - begin, []
    for _ in range(a.steps):
        begin = time.perf_counter()
        loss, _ = step()
        times.append(time.perf_counter() - begin)
    peak = peak_mb()
    if a.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=a.shapes) as p:
            step()
        print(p.key_averages(group_by_input_shape=a.shapes).table(sort_by="self_cpu_time_total", row_limit=40 if a.shapes else 25), file=sys.stderr)
    median = statistics.median(times)
    return {
        "torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads(),
        "precision": a.precision, "layout": a.layout, "dropout": a.dropout, "attention": a.attention, "gemm": a.gemm, "malloc": a.malloc, "tunables": os.environ.get("GLIBC_TUNABLES", ""), "compiled": a.compile, "batch": b,
        "parameters": sum(p.numel() for p in m.parameters() if p.requires_grad), "steps": a.steps, "loss": loss,
        "step_ms": 1e3 * median, "samples_per_second": b / median, "warmup_s": warmup,
        "gemm_gflops": gemm_speed(torch.bfloat16 if a.precision == "bf16" else torch.float32),
        "peak_rss_mb": peak, "import_rss_mb": at_start,
    }


def gemm_speed(dtype, m=2048, k=1536, n=768, seconds=1.0):
    """GFLOP/s of the matrix product that trainer bench calls the peak."""
    a, w, out = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype), torch.empty(m, n, dtype=dtype)
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        torch.mm(a, w.T, out=out)
        best = min(best, time.perf_counter() - begin)
    return 2 * m * k * n / best / 1e9


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def products_by_onednn():
    """Sends 32-bit matrix products to oneDNN, which torch leaves to MKL otherwise.

    The setting permits bf16 inside of a product. Without AMX oneDNN computes in 32 bits
    all the same; where it does not, this is refused.
    """
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    a, w = torch.randn(512, 768), torch.randn(768, 512)
    want = a.double() @ w.double()
    if ((a @ w - want).abs().max() / want.abs().max()).item() > 1e-5:
        sys.exit("--gemm onednn: on this processor it would compute in bf16")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", default="configs/bench/albef-small.toml")
    p.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="overrides of the file, repeatable")
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: torch.autocast over 32-bit weights")
    p.add_argument("--threads", type=int, default=torch.get_num_threads())
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--layout", choices=albef.ALBEF.layouts, default="merged", help="passes, see albef.ALBEF and clip.CLIP")
    p.add_argument("--dropout", choices=["bits", "native"], default="bits", help="own dropout or torch's, see towers.drop")
    p.add_argument("--attention", choices=["fastest", "fused"], default="fastest", help="see towers.attend")
    p.add_argument("--gemm", choices=["default", "onednn"], default="default", help="what multiplies in fp32, see products_by_onednn")
    p.add_argument("--malloc", choices=["keep", "default"], default="keep", help="whether freed memory stays in the process")
    p.add_argument("--between", choices=["fp32", "bf16"], default="bf16", help="with bf16: type of what flows between layers")
    p.add_argument("--compile", action="store_true", help="torch.compile of the layers (with torch's dropout)")
    p.add_argument("--profile", action="store_true", help="a table of torch.profiler on stderr")
    p.add_argument("--shapes", action="store_true", help="the table of --profile by the shapes of operands")
    p.add_argument("--check", metavar="FOLDER", nargs="?", const="model/testdata", help="compare steps with golden files instead")
    a = p.parse_args()
    if a.compile:
        a.dropout = "native"  # which inductor makes its own of
    towers.DROPOUT, towers.ATTENTION = a.dropout, a.attention
    if a.check:
        import check  # which needs safetensors

        sys.exit(check.run(a.check, a.compile))
    if a.precision == "bf16" and a.between == "bf16":
        towers.DTYPE = torch.bfloat16
    if a.gemm == "onednn":
        products_by_onednn()
    if a.malloc == "keep":
        keep_memory()
    print(json.dumps(bench(settings.load(a.config, a.set), a)))


if __name__ == "__main__":
    main()
