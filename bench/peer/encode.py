"""A ViT-B/16 and a BERT-base in inference: PyTorch, onnxruntime and OpenVINO beside `trainer bench --inference`.

    python3 bench/peer/encode.py --trainer bin/trainer     # all of them in turns, from the root of the repository

Random weights, pictures of 224 pixels in batches of 16, captions of 8 to 40 tokens in batches of 32. Each peer is used as
its documentation advises for speed on a processor:

    eager          transformers (sdpa), and for pictures timm too; in bf16 the better of autocast and of bfloat16 weights
    onnxruntime    the model exported by torch.onnx and fused by onnxruntime.transformers; it has no bfloat16 on processors
    openvino       the same export, INFERENCE_PRECISION_HINT f32 or bf16, PERFORMANCE_HINT LATENCY

Captions are sorted by length and padded to the longest of their batch, with shapes that may change from batch to batch.
A peer that is not installed is left out, with a note. The rate is that of the fastest pass of all rounds. ViTs of peers give all 197 states
of the last block; ours computes those that features need, and in a line of its own (states) all of them.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
import torch
import transformers

from memory import keep_memory

TASKS, PRECISIONS, PEERS = ("pictures", "texts"), ("fp32", "bf16"), ("eager", "onnxruntime", "openvino")
PICTURES, CAPTIONS, BATCH = 16, 256, 32


def captions():
    """Batches of ids and masks, sorted by length; lengths are those of bench.CaptionLength in Go."""
    lengths = sorted(8 + i * 619 % 256 * 33 // 256 for i in range(CAPTIONS))
    rng = np.random.default_rng(1)
    batches = []
    for at in range(0, CAPTIONS, BATCH):
        some = np.array(lengths[at:at + BATCH])
        ids = rng.integers(1000, 30522, (len(some), some.max()))
        mask = (np.arange(some.max())[None] < some[:, None]).astype(np.int64)
        batches.append((ids * mask, mask))
    return batches


class Texts(torch.nn.Module):
    """BERT-base with what is read of it: the states."""

    def __init__(self):
        super().__init__()
        self.bert = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False).eval()

    def forward(self, input_ids, attention_mask):
        return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


class Pictures(torch.nn.Module):
    """ViT-B/16 of transformers."""

    def __init__(self):
        super().__init__()
        self.vit = transformers.ViTModel(transformers.ViTConfig(), add_pooling_layer=False).eval()

    def forward(self, pixel_values):
        return self.vit(pixel_values).last_hidden_state


def modules():
    """The modules of each task by their names."""
    lists = {"pictures": {"transformers": Pictures().eval()}, "texts": {"transformers": Texts().eval()}}
    try:
        import timm
        lists["pictures"]["timm"] = timm.create_model("vit_base_patch16_224", num_classes=0).eval()
    except ImportError:
        print("note: timm is not installed")
    return lists


def exported(folder, task, module):
    """The file of a module in ONNX, as torch.onnx writes it."""
    plain = folder / f"{task}.onnx"
    if not plain.exists():
        if task == "pictures":
            args, names = (torch.rand(2, 3, 224, 224),), ["pixel_values"]
            axes = {"pixel_values": {0: "rows"}}
        else:
            args, names = (torch.ones(2, 9, dtype=torch.int64), torch.ones(2, 9, dtype=torch.int64)), ["input_ids", "attention_mask"]
            axes = {n: {0: "rows", 1: "tokens"} for n in names}
        torch.onnx.export(module, args, str(plain), input_names=names, output_names=["states"], dynamic_axes=axes, dynamo=False)
    return plain


def optimized(plain, task):
    """The file of an export that onnxruntime has fused."""
    fused = plain.with_suffix(".fused.onnx")
    if not fused.exists():
        from onnxruntime.transformers import optimizer
        kind = "vit" if task == "pictures" else "bert"
        m = optimizer.optimize_model(str(plain), model_type=kind, num_heads=12, hidden_size=768, opt_level=1)
        m.save_model_to_file(str(fused))
        print(f"{task}: onnxruntime fused {({k: v for k, v in m.get_fused_operator_statistics().items() if v})}")
    return fused


def feeds(task):
    """The inputs of each batch as numpy arrays by their names."""
    if task == "pictures":
        return [{"pixel_values": np.random.default_rng(1).random((PICTURES, 3, 224, 224), dtype=np.float32)}]
    return [{"input_ids": ids, "attention_mask": mask} for ids, mask in captions()]


def eager(module, task, precision):
    """Runs of PyTorch by their names."""
    batches = [{k: torch.from_numpy(v) for k, v in f.items()} for f in feeds(task)]

    @torch.inference_mode()
    def run(m, inputs):
        for x in inputs:
            m(*x.values())

    if precision == "fp32":
        return {"": lambda: run(module, batches)}

    def cast():
        with torch.autocast("cpu", torch.bfloat16):
            run(module, batches)

    import copy
    half = copy.deepcopy(module).bfloat16()
    halves = [{k: v.bfloat16() if v.is_floating_point() else v for k, v in x.items()} for x in batches]
    return {" autocast": cast, " bf16 weights": lambda: run(half, halves)}


def onnx(file, task, threads):
    import onnxruntime
    runs = {}
    for name, path in ("", file), (" fused", optimized(file, task)):
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads = threads
        o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        s = onnxruntime.InferenceSession(str(path), o, providers=["CPUExecutionProvider"])

        def run(s=s):
            for x in feeds_of[task]:
                s.run(None, x)
        runs[name] = run
    return runs


def vino(file, task, precision, threads):
    import openvino
    core = openvino.Core()
    m = core.compile_model(core.read_model(str(file)), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32" if precision == "fp32" else "bf16", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads})
    r = m.create_infer_request()

    def run():
        for x in feeds_of[task]:
            r.infer(x, share_inputs=True, share_outputs=True)
    return {"": run}


feeds_of = {}


def peers(o, task, precision, lists, folder):
    """Runs by their names, each a pass over the rows of a task."""
    runs = {}
    if "eager" in o.peers:
        for name, module in lists[task].items():
            runs |= {f"{name}{k}": v for k, v in eager(module, task, precision).items()}
    if {"onnxruntime", "openvino"} & set(o.peers):
        try:
            file = exported(folder, task, lists[task]["transformers"])
        except ImportError as e:
            print(f"note: no export: {e}")
            return runs
        for name, start in (("onnxruntime", lambda: onnx(file, task, o.threads)), ("openvino", lambda: vino(file, task, precision, o.threads))):
            if name not in o.peers or name == "onnxruntime" and precision == "bf16":
                continue
            try:
                runs |= {f"{name}{k}": v for k, v in start().items()}
            except ImportError as e:
                print(f"note: {name} is left out: {e}")
    return runs


def best(run, rows, seconds):
    run()
    least, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
        if time.perf_counter() > end:
            return rows / least


def ours(o, task, precision):
    """The best rates of `trainer bench --inference`, of features alone and with all states."""
    side = "images" if task == "pictures" else "texts"
    out = subprocess.run([o.trainer, "bench", "--inference", "--config", o.config, "--set", f"compute.precision={precision}", "--set", f"compute.threads={o.threads}",
                          "--sides", side, "--batches", str(PICTURES if task == "pictures" else BATCH), "--seconds", str(o.seconds), "--json", "--quiet"],
                         check=True, capture_output=True, text=True).stdout
    return {f"geoalign{k}": r["best_per_second"] for r in json.loads(out)["inference"][0]["encodings"] for k in ([" states"] if r["states"] else [""])}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=2, help="rounds of alternating runs")
    p.add_argument("--seconds", type=float, default=2, help="of a run")
    p.add_argument("--tasks", default=",".join(TASKS))
    p.add_argument("--precisions", default=",".join(PRECISIONS))
    p.add_argument("--peers", default=",".join(PEERS))
    p.add_argument("--models", help="folder that keeps the exported models; default: one that is removed")
    p.add_argument("--trainer", help="measure this program too")
    p.add_argument("--config", default="configs/bench/encode-base.toml", help="of trainer")
    o = p.parse_args()
    for option, have in (("tasks", TASKS), ("precisions", PRECISIONS), ("peers", PEERS)):
        got = getattr(o, option).split(",")
        for k in got:
            if k not in have:
                p.error(f"--{option}: {k} is none of {', '.join(have)}")
        setattr(o, option, got)
    if o.trainer and not os.access(o.trainer, os.X_OK):
        p.error(f"{o.trainer} is no program: build it with make, or name it with --trainer")
    warnings.filterwarnings("ignore")
    keep_memory()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    os.environ.setdefault("OMP_NUM_THREADS", str(o.threads))
    versions = [f"torch {torch.__version__}", f"transformers {transformers.__version__}"]
    for name in ("timm", "onnxruntime", "openvino"):
        try:
            versions.append(f"{name} {__import__(name).__version__}")
        except ImportError:
            pass
    print(", ".join(versions) + f", {o.threads} threads, a second", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(o.models or temporary)
        folder.mkdir(exist_ok=True)
        lists = modules()
        for task in o.tasks:
            feeds_of[task] = feeds(task)
            rows = PICTURES if task == "pictures" else CAPTIONS
            for precision in o.precisions:
                compare(o, task, precision, rows, peers(o, task, precision, lists, folder))


def compare(o, task, precision, rows, runs):
    """Prints the rates of a task in a precision, and of ours its ratio to each."""
    rates = {}
    for _ in range(o.rounds):
        found = {name: best(run, rows, o.seconds) for name, run in runs.items()}
        if o.trainer:
            found |= ours(o, task, precision)
        for name, rate in found.items():
            rates[name] = max(rate, rates.get(name, 0))
    print(f"{task} {precision}")
    for name, rate in rates.items():
        ratio = "" if name.startswith("geoalign") or "geoalign" not in rates else f"  {rates['geoalign'] / rate:5.2f} times as many"
        print(f"  {name:28s} {rate:8.2f}{ratio}", flush=True)


main()
