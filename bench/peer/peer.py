"""A training step in PyTorch, timed.

  python bench/peer/peer.py --config configs/bench/albef-small.toml --precision bf16
  python bench/peer/peer.py --config configs/bench/albef-base.toml --precision bf16 --device cuda
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
import device  # noqa: E402
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


def optimizer_of(m, o, capturable=False):
    params = [p for p in m.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in params if p.dim() > 1], "weight_decay": o["decay"]},
        {"params": [p for p in params if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], fused=True,
                             capturable=capturable)


def autocast(precision, on="cpu"):
    return torch.autocast(on, torch.bfloat16, enabled=precision == "bf16")


def bench(c, a):
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    at_start = peak_mb()
    speeds = gemm_speeds(a) if a.device == "cuda" else {}  # before the memory is full
    with torch.device(a.device):
        m = build(c, a.layout)
        batch = m.random_batch()
    if a.compile and not towers.compile_layers(m):
        sys.exit("--compile: this model has no layers that are compiled")
    optimizer, b = optimizer_of(m, c["optimizer"], a.graph), c["train"]["batch_size"]

    def step():
        with autocast(a.precision, a.device):
            out = m(**batch)
        out[0].backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        m.after_update(out)
        return out[0].detach()  # reading it would wait for the device

    begin = time.perf_counter()
    for _ in range(a.warmup):
        step()
    device.wait(a.device)
    syncs = {"host_syncs": device.host_syncs(step)} if a.device == "cuda" else {}
    device.forget_peak(a.device)
    timed = device.captured(step) if a.graph else step
    warmup, times = time.perf_counter() - begin, []
    for _ in range(a.steps):
        device.wait(a.device)
        begin = time.perf_counter()
        loss = timed()
        device.wait(a.device)
        times.append(time.perf_counter() - begin)
    peak = peak_mb()
    more = {**device.names(a.device), **device.memory(a.device), **syncs}
    if a.profile:
        print(profile(timed, a), file=sys.stderr)
    speeds = speeds or gemm_speeds(a)
    median = statistics.median(times)
    return {
        "torch": torch.__version__, "device": a.device, **more,
        "cpu": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads(),
        "precision": a.precision, "layout": a.layout, "dropout": a.dropout, "attention": a.attention,
        "gemm": a.gemm, "malloc": a.malloc, "tunables": os.environ.get("GLIBC_TUNABLES", ""),
        "compiled": a.compile, "graph": a.graph, "tf32": a.tf32, "sdpa": a.sdpa, "batch": b,
        "parameters": sum(p.numel() for p in m.parameters() if p.requires_grad), "steps": a.steps, "loss": loss.item(),
        "step_ms": 1e3 * median, "samples_per_second": b / median, "warmup_s": warmup,
        **speeds, "peak_rss_mb": peak, "import_rss_mb": at_start,
    }


def profile(step, a):
    """The table of torch's profiler over a step."""
    activity, by = torch.profiler.ProfilerActivity, "self_cpu_time_total"
    activities = [activity.CPU]
    if a.device == "cuda":
        activities, by = [activity.CPU, activity.CUDA], "self_device_time_total"
    with torch.profiler.profile(activities=activities, record_shapes=a.shapes) as p:
        step()
        device.wait(a.device)
    return p.key_averages(group_by_input_shape=a.shapes).table(sort_by=by, row_limit=40 if a.shapes else 25)


def gemm_speeds(a):
    """Speed of the peak's product in the precision of the run, on a CUDA device in both."""
    types = {"fp32": torch.float32, "bf16": torch.bfloat16}
    if a.device != "cuda":
        return {"gemm_gflops": gemm_speed(types[a.precision])}
    speeds = {k: gemm_speed(t, 8192, 8192, 8192, "cuda", 10) for k, t in types.items()}
    torch.cuda.empty_cache()
    return {"gemm_gflops": speeds[a.precision], **{f"gemm_{k}_gflops": v for k, v in speeds.items()}}


def gemm_speed(dtype, m=2048, n=1536, k=768, on="cpu", calls=1, seconds=1.0):
    """GFLOP/s of the matrix product that trainer bench calls the peak, or of another; calls: that a clock is read for."""
    with torch.device(on):
        a, w, out = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype), torch.empty(m, n, dtype=dtype)
    torch.mm(a, w.T, out=out)
    device.wait(on)
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(calls):
            torch.mm(a, w.T, out=out)
        device.wait(on)
        best = min(best, (time.perf_counter() - begin) / calls)
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


def check_flags(p, a):
    """Refuses flags that do not go together and sets what depends on the device."""
    if a.device == "cpu":
        for flag in ("graph", "tf32", "sdpa"):
            if getattr(a, flag):
                p.error(f"--{flag} is a matter of --device cuda")
        a.dropout = "native" if a.compile else a.dropout or "bits"  # inductor makes its own of torch's
        return
    if a.dropout == "bits" or a.gemm == "onednn":
        p.error("--dropout bits and --gemm onednn are for processors: leave them out with --device cuda")
    device.require(a.device)
    if a.attention == "fused":
        torch.backends.cuda.enable_math_sdp(False)  # an error rather than attention that is not fused
    a.dropout, a.attention = "native", "fused"
    torch.backends.cuda.matmul.allow_tf32 = a.tf32


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", default="configs/bench/albef-small.toml")
    p.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="overrides of the file, repeatable")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: model and batch on the first CUDA device")
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: torch.autocast over 32-bit weights")
    p.add_argument("--threads", type=int, default=torch.get_num_threads())
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--layout", choices=albef.ALBEF.layouts, default="merged", help="passes, see albef.ALBEF and clip.CLIP")
    p.add_argument("--dropout", choices=["bits", "native"], help="own or torch's, see towers.drop (bits; on a CUDA device native)")
    p.add_argument("--attention", choices=["fastest", "fused"], default="fastest", help="see towers.attend")
    p.add_argument("--gemm", choices=["default", "onednn"], default="default", help="what multiplies in fp32, see products_by_onednn")
    p.add_argument("--malloc", choices=["keep", "default"], default="keep", help="whether freed memory stays in the process")
    p.add_argument("--between", choices=["fp32", "bf16"], default="bf16", help="with bf16: type of what flows between layers")
    p.add_argument("--compile", action="store_true", help="torch.compile of the layers (with torch's dropout)")
    p.add_argument("--graph", action="store_true", help="of --device cuda: the whole step as a CUDA graph, see device.captured")
    p.add_argument("--tf32", action="store_true", help="of --device cuda: 32-bit products may round their operands to TF32")
    p.add_argument("--sdpa", choices=["cudnn"], help="of --device cuda: whose attention comes first (torch's own order)")
    p.add_argument("--profile", action="store_true", help="a table of torch.profiler on stderr")
    p.add_argument("--shapes", action="store_true", help="the table of --profile by the shapes of operands")
    p.add_argument("--check", metavar="FOLDER", nargs="?", const="model/testdata", help="compare steps with golden files instead")
    a = p.parse_args()
    check_flags(p, a)
    towers.DROPOUT, towers.ATTENTION = a.dropout, a.attention
    if a.check:
        import check  # which needs safetensors

        sys.exit(check.run(a.check, a.compile, a.device))
    if a.precision == "bf16" and a.between == "bf16":
        towers.DTYPE = torch.bfloat16
    if a.gemm == "onednn":
        products_by_onednn()
    if a.malloc == "keep":
        keep_memory()
    with device.attention_order(a.sdpa):
        print(json.dumps(bench(settings.load(a.config, a.set), a)))


if __name__ == "__main__":
    main()
