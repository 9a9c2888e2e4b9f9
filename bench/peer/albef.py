"""A training step of ALBEF in PyTorch, timed.

  python bench/peer/albef.py --config configs/bench/albef-small.toml
  python bench/peer/albef.py --check model/testdata/albef_pair.safetensors

Reads the same TOML files as trainer bench, trains on random data of the same shapes and
prints one line of JSON.
"""
import argparse
import ctypes
import json
import math
import resource
import statistics
import sys
import time
import tomllib

import torch

sys.dont_write_bytecode = True
import model  # noqa: E402, beside this file

# The keys that matter here, with the defaults of config/defaults.go.
DEFAULTS = {
    "data": {"tokens": 30, "vocab_size": 30522},
    "model": {
        "image": {"size": 256, "patch": 16, "depth": 12, "width": 768, "heads": 12, "mlp": 0},
        "text": {"layers": 6, "fusion_layers": 6, "width": 768, "heads": 12, "mlp": 0, "positions": 512, "dropout": 0.1},
        "head": {"dim": 256},
    },
    "momentum": {"m": 0.995},
    "queue": {"size": 65536},
    "objective": {
        "distill": {"alpha": 0.4},
        "itc": {"weight": 1.0, "in_batch_weight": 0.0, "temperature": 0.07, "temperature_min": 0.001, "temperature_max": 0.5},
        "itm": {"weight": 1.0},
        "mlm": {"weight": 1.0, "prob": 0.15},
    },
    "optimizer": {"lr": 1e-4, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "decay": 0.02},
    "train": {"batch_size": 64},
}

# Keys that must have these values, if they are set.
ONLY = {
    "model.system": "albef", "momentum.enabled": True, "momentum.dropout": True, "objective.itc.positives": "pair",
    "objective.itc.learn_temperature": True, "optimizer.clip_norm": 0, "compute.precision": "fp32",
}


def overlay(base, top):
    """base with the values of top for the keys that base has."""
    return {k: overlay(v, top.get(k, {})) if isinstance(v, dict) else top.get(k, v) for k, v in base.items()}


def load_config(path):
    with open(path, "rb") as f:
        c = tomllib.load(f)
    for key, only in ONLY.items():
        value = c
        for part in key.split("."):
            value = value.get(part, {})
        if value not in ({}, only):
            sys.exit(f"{path}: {key} = {value!r} is not what this program does, which is {only!r}")
    c = overlay(DEFAULTS, c)
    for k in ("itc", "itm", "mlm"):
        if c["objective"][k]["weight"] == 0:
            sys.exit(f"{path}: objective.{k}.weight is 0, but this program computes all three losses")
    return c


def mask_rows(b, l, prob):
    """M of a graph of fixed shapes, objectives.MaskCapacity."""
    n = b * (l - 1)
    return max(min(8 * math.ceil((n * prob + 6 * math.sqrt(n * prob * (1 - prob))) / 8), n), 1)


def random_batch(c):
    b, l, s, v = c["train"]["batch_size"], c["data"]["tokens"], c["model"]["image"]["size"], c["data"]["vocab_size"]
    tokens = torch.randint(v, (b, l))
    m = mask_rows(b, l, c["objective"]["mlm"]["prob"])
    places = torch.arange(m) * b * l // m
    return {
        "images": torch.randn(b, 3, s, s), "tokens": tokens, "masked": tokens.clone(),
        "lengths": torch.full((b,), l), "places": places, "labels": tokens.flatten()[places],
    }


def optimizer_of(m, o):
    params = [p for p in m.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in params if p.dim() > 1], "weight_decay": o["decay"]},
        {"params": [p for p in params if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], fused=True)


def bench(c, a):
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    at_start = peak_mb()
    m = model.ALBEF(c, c["data"]["vocab_size"], a.layout)
    if a.compile:
        m.compile_blocks()
    optimizer = optimizer_of(m, c["optimizer"])
    batch, alpha, itc = random_batch(c), c["objective"]["distill"]["alpha"], c["objective"]["itc"]
    online, teacher = list(m.online.parameters()), list(m.teacher.parameters())
    b = c["train"]["batch_size"]

    def step():
        loss, parts, image, text = m(**batch, alpha=alpha, noise=model.gumbel(b))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            m.temperature.clamp_(itc["temperature_min"], itc["temperature_max"])
            torch._foreach_lerp_(teacher, online, 1 - c["momentum"]["m"])
        m.enqueue(image, text)
        return loss.item(), [p.item() for p in parts.values()]

    begin = time.perf_counter()
    for _ in range(a.warmup):
        step()
    warmup, times = time.perf_counter() - begin, []
    for _ in range(a.steps):
        begin = time.perf_counter()
        loss, _ = step()
        times.append(time.perf_counter() - begin)
    if a.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
            step()
        print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=25), file=sys.stderr)
    median = statistics.median(times)
    return {
        "torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads(),
        "layout": a.layout, "dropout": a.dropout, "malloc": a.malloc, "compiled": a.compile, "batch": b,
        "parameters": sum(p.numel() for p in m.parameters() if p.requires_grad), "steps": a.steps, "loss": loss,
        "step_ms": 1e3 * median, "samples_per_second": b / median, "warmup_s": warmup,
        "gemm_gflops": gemm_speed(), "peak_rss_mb": peak_mb(), "import_rss_mb": at_start,
    }


def gemm_speed(m=2048, k=1536, n=768, seconds=1.0):
    """GFLOP/s of the matrix product that trainer bench calls the peak."""
    a, w, out = torch.randn(m, k), torch.randn(n, k), torch.empty(m, n)
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        torch.mm(a, w.T, out=out)
        best = min(best, time.perf_counter() - begin)
    return 2 * m * k * n / best / 1e9


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def keep_memory():
    """Makes glibc keep freed memory, so that large tensors are not mapped anew each step."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def golden_config(g):
    """The tiny model of tools/goldens/albef.py, sizes from its weights."""
    size, (heads, in_batch) = g["input/images"].shape[-1], (2, 0.5)
    width, patch = g["param/image/patch_embed/weight"].shape[0], math.isqrt(g["param/image/patch_embed/weight"].shape[1] // 3)
    layers = {k.split("/")[3] for k in g if k.startswith("param/text/layers/")}
    fusion = {k.split("/")[3] for k in g if k.startswith("param/text/layers/") and "/crossattention/" in k}
    blocks = {k.split("/")[3] for k in g if k.startswith("param/image/blocks/")}
    positions, text_width = g["param/text/embeddings/position/weight"].shape
    return overlay(DEFAULTS, {
        "model": {
            "image": {"size": size, "patch": patch, "depth": len(blocks), "width": width, "heads": heads},
            "text": {"layers": len(layers) - len(fusion), "fusion_layers": len(fusion), "width": text_width,
                     "heads": heads, "positions": positions, "dropout": 0.0},
            "head": {"dim": g["param/image_proj/weight"].shape[0]},
        },
        "queue": {"size": g["input/image_queue"].shape[0]},
        "objective": {"itc": {"in_batch_weight": in_batch}},
    })


def golden_name(name):
    """online.image.blocks.0.norm1.weight -> image/blocks/00/norm1/weight"""
    parts = [p.zfill(2) if p.isdigit() else p for p in name.split(".")]
    return "/".join(parts[1:] if parts[0] in ("online", "teacher") else parts)


def check(path, layout, compiled):
    """Compares loss parts, features and gradients with a golden step."""
    from safetensors.torch import load_file

    g = load_file(path)
    c = golden_config(g)
    m = model.ALBEF(c, g["param/text/embeddings/word/weight"].shape[0], layout)
    with torch.no_grad():
        for name, p in m.named_parameters():
            p.copy_(g[("momentum/" if name.startswith("teacher.") else "param/") + golden_name(name)])
        m.image_queue.copy_(g["input/image_queue"])
        m.text_queue.copy_(g["input/text_queue"])
    if compiled:
        m.compile_blocks()
    ints = lambda k: g["input/" + k].long()
    real = ints("mask_labels") >= 0
    loss, parts, fim, ftm = m(
        images=g["input/images"], tokens=ints("tokens"), masked=ints("masked"), lengths=ints("lengths"),
        places=ints("mask_places")[real], labels=ints("mask_labels")[real], alpha=0.4,
        noise=torch.stack([g["input/noise_i2t"], g["input/noise_t2i"]]), filled=5,
    )
    loss.backward()
    failed = False

    def compare(name, got, want, limit):
        nonlocal failed
        scale = max(want.abs().max().item(), 1e-7)
        diff = (got.detach() - want).abs().max().item() / (scale if scale > 1e-7 else 1)
        if not diff <= limit:
            failed = True
            print(f"{name}: differs by {diff:.1e} of its largest element, allowed {limit:.0e}", file=sys.stderr)
        return diff

    worst = {}
    for name, got in {"loss": loss, **parts, "image_m": fim, "text_m": ftm}.items():
        worst[name] = compare(name, got, g["expect/" + name], 1e-4)
    worst["gradients"] = max(
        compare(name, p.grad, g["grad/" + golden_name(name)], 1e-4) for name, p in m.named_parameters() if p.requires_grad
    )
    print(f"{path}, layout {layout}: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", default="configs/bench/albef-small.toml")
    p.add_argument("--threads", type=int, default=torch.get_num_threads())
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--layout", choices=["merged", "reference"], default="merged", help="passes, see model.ALBEF")
    p.add_argument("--dropout", choices=["bits", "native"], default="bits", help="own dropout or torch's, see model.drop")
    p.add_argument("--malloc", choices=["keep", "default"], default="keep", help="whether freed memory stays in the process")
    p.add_argument("--compile", action="store_true", help="torch.compile of the layers (with torch's dropout)")
    p.add_argument("--profile", action="store_true", help="a table of torch.profiler on stderr")
    p.add_argument("--check", metavar="FILE", help="compare a step with a golden file instead")
    a = p.parse_args()
    if a.compile:
        a.dropout = "native"  # which inductor makes its own of
    model.DROPOUT = a.dropout
    if a.check:
        failed = [check(a.check, layout, a.compile) for layout in ("merged", "reference")]
        sys.exit(any(failed))
    if a.malloc == "keep":
        keep_memory()
    print(json.dumps(bench(load_config(a.config), a)))


if __name__ == "__main__":
    main()
