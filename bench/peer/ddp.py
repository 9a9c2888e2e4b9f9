"""The peer's training step on several processes: PyTorch's DistributedDataParallel over gloo.

  python bench/peer/ddp.py --config configs/bench/albef-small.toml --ranks 2
  python bench/peer/ddp.py --config configs/bench/albef-small.toml --ranks 2 --go

Each process has train.batch_size / ranks rows and --threads threads, gradients are summed while
the backward pass goes on, and momentum features are gathered into every queue, as in ALBEF's
published code: contrast and negatives are those of a process's own rows and the queue. With --go
bin/trainer bench runs under mpirun in turns with it. Prints samples per second of all processes
together, for one process of as many threads with the whole batch (strong) and with a share of
it (weak), and the scaling.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.dont_write_bytecode = True
import peer  # noqa: E402, the files beside this one
import settings  # noqa: E402
import towers  # noqa: E402
from memory import keep_memory  # noqa: E402


def gathered(x):
    """The rows of all processes, those of the first one first."""
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts)


def work(rank, ranks, port, a, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS=str(a.threads))
    torch.set_num_threads(a.threads)
    keep_memory()
    if a.precision == "bf16":
        towers.DTYPE = torch.bfloat16
    c = settings.load(a.config, a.set)
    c["train"]["batch_size"] //= ranks
    torch.manual_seed(1)
    m = peer.build(c, a.layout)
    optimizer, batch = peer.optimizer_of(m, c["optimizer"]), m.random_batch()
    model = m
    if ranks > 1:
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        model = torch.nn.parallel.DistributedDataParallel(m, broadcast_buffers=False, static_graph=True, gradient_as_bucket_view=True)
        enqueue = m.enqueue
        m.enqueue = lambda image, text: enqueue(gathered(image), gathered(text))

    def step():
        with peer.autocast(a.precision):
            out = model(**batch)
        out[0].backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        m.after_update(out)
        out[0].item()

    for _ in range(a.warmup):
        step()
    times = []
    for _ in range(a.steps):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        results.put((statistics.median(times), peer.peak_mb()))
    if ranks > 1:
        dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def theirs(ranks, a):
    """Samples per second of all processes, milliseconds of a step and MB of the first process."""
    results = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, (ranks, free_port(), a, results), nprocs=ranks)
    seconds, mb = results.get()
    return settings.load(a.config, a.set)["train"]["batch_size"] / seconds, 1e3 * seconds, mb


def ours(ranks, a):
    """The same of bin/trainer bench."""
    command = ["bin/trainer", "bench", "--config", a.config, "--json", "--steps", str(a.steps), "--warmup", str(a.warmup),
               "--set", f"compute.threads={a.threads}", "--set", f"compute.precision={a.precision}"]
    for x in a.set:
        command += ["--set", x]
    if ranks > 1:
        command += ["--ranks", str(ranks)]
    r = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ranked = r.get("ranks")
    return r["samples_per_second"], r["step_ms"], ranked["peak_memory_mb"]["max"] if ranked else r["peak_memory_mb"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", default="configs/bench/albef-small.toml")
    p.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="overrides of the file, repeatable")
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--threads", type=int, default=1, help="of each process")
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--layout", default="merged")
    p.add_argument("--go", action="store_true", help="bin/trainer bench in turns with it")
    a = p.parse_args()
    c = settings.load(a.config, a.set)
    if settings.family(c) != "albef":
        sys.exit(f"{a.config}: the step of several processes is that of ALBEF alone, whose queues join them")
    whole = c["train"]["batch_size"]
    if whole % a.ranks:
        sys.exit(f"train.batch_size = {whole} is no multiple of {a.ranks} processes")
    share = argparse.Namespace(**{**vars(a), "set": [*a.set, f"train.batch_size={whole // a.ranks}"]})
    sides = {"PyTorch " + torch.__version__: theirs, **({"geoalign": ours} if a.go else {})}
    cases = {"1 process": (1, a), "1 process, a share of the batch": (1, share), f"{a.ranks} processes": (a.ranks, a)}
    got = {}
    for r in range(a.rounds):
        for case, (ranks, of) in cases.items():
            for side, run in sides.items():
                got.setdefault((side, case), []).append(x := run(ranks, of))
                print(f"round {r + 1}: {side}, {case}: {x[0]:.2f} samples/s, {x[1]:.0f} ms a step, {x[2]:.0f} MB", flush=True)
    one, part, all_ = cases
    print(f"\n{a.config}, batch {whole}, {a.precision}, {a.threads} thread(s) a process, medians of {a.rounds} rounds")
    for side in sides:
        speed = {case: statistics.median(x[0] for x in got[side, case]) for case in cases}
        print(f"{side}: {speed[all_]:.2f} samples/s; {speed[all_] / speed[one]:.2f} times one process (strong), "
              f"{speed[all_] / speed[part]:.2f} times one process with a share of the batch (weak)")


if __name__ == "__main__":
    main()
