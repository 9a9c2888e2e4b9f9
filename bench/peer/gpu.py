"""geoalign and PyTorch side by side on a CUDA device: one training step at several batches.

  python bench/peer/gpu.py --configs bench/albef-base,bench/albef-small --batches 32,64,128,256 --limit 480 --save gpu.jsonl

For each configuration and batch runs bin/trainer bench and the peers in turn, each in a
process of its own, and prints a row as soon as it is known. What fails, or finds no memory,
has a row that says so; what would not end within --limit is left out. Build bin/trainer before.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from compare import HERE, gemm_of, machine, run  # noqa: E402, beside this file

OURS = "geoalign"
PEERS = {
    "flash": ["--attention", "fused"],
    "pruned": ["--attention", "fused", "--layout", "pruned"],
    "cudnn": ["--attention", "fused", "--sdpa", "cudnn"],
    "graph": ["--attention", "fused", "--graph"],
    "compiled": ["--attention", "fused", "--compile"],
}
ABOUT = {
    "flash": "PyTorch eager: autocast, fused attention, AdamW and dropout, bf16 between the layers",
    "pruned": "as flash, without the work that no loss reads, which geoalign leaves out as well",
    "cudnn": "as flash, cuDNN's attention first",
    "graph": "as flash, the whole step captured as a CUDA graph",
    "compiled": "as flash, layers through torch.compile",
}
HEAD = ["config", "precision", "batch", "peer", "ours ms", "PyTorch ms", "speed ratio", "ours MB", "PyTorch MB",
        "ours % of peak", "PyTorch % of peak"]
FIRST = 25  # seconds that the first run of a side is expected to take
FAILURES = 2  # of a side in a row, after which it is left out


def config_file(name):
    """configs/bench/heads.toml of bench/heads; a path stays as it is."""
    for path in (name, f"configs/{name}", f"configs/{name}.toml"):
        if os.path.isfile(path):
            return path
    sys.exit(f"--configs: no file {name}, configs/{name} or configs/{name}.toml: run this from the root of the repository")


def card():
    """Name, driver and limits of the first CUDA device, as nvidia-smi tells them."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm", "--format=csv,noheader"]
    try:
        first = subprocess.run(query, check=True, capture_output=True, text=True, timeout=20).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError) as e:
        return f"device unknown (nvidia-smi: {e})"
    name, driver, memory, power, clock = (s.strip() for s in first.split(","))
    return f"{name} ({memory}, {power}, at most {clock}), driver {driver}"


def memory_of(r, device):
    """The most memory of the device that a run held (MB), None if it does not say; of a processor its resident memory."""
    return r["rss_mb"] if device == "cpu" else r.get("peak_device_mb") or r["device"]["memory_mb"]


class Session:
    """Runs within a limit of time, and what they gave."""

    def __init__(self, a):
        self.a, self.end = a, time.monotonic() + a.limit
        self.wall = {}  # side -> seconds that its last run took
        self.full = {}  # (side, config) -> batch that found no memory
        self.failed = {}  # side -> how often in a row it failed otherwise
        self.results = []  # of the runs that ended well

    def save(self, kind, **what):
        """Adds a line to the file of --save."""
        if self.a.save:
            with open(self.a.save, "a") as f:
                f.write(json.dumps({"kind": kind, **what}) + "\n")

    def command(self, side, path, batch):
        a = self.a
        common = ["--config", path, "--steps", str(a.steps), "--warmup", str(a.warmup), "--set", f"train.batch_size={batch}"]
        for text in a.set:
            common += ["--set", text]
        if side != OURS:
            common += ["--device", a.device, "--precision", a.precision] + (["--tf32"] if a.tf32 else [])
            return [sys.executable, str(HERE / "peer.py"), *common, *PEERS[side]]
        device = ["--set", f"compute.device={a.device}"] if a.device != "cpu" else []
        ours = [x for text in a.set_ours for x in ("--set", text)]
        return [a.trainer, "bench", *common, "--json", "--quiet", *device, "--set", f"compute.precision={a.precision}", *ours]

    def measure(self, side, path, batch):
        """The result of a run, or {"note": why there is none}."""
        config, left = pathlib.Path(path).stem, self.end - time.monotonic()
        if self.full.get((side, config), batch + 1) <= batch:
            r = {"note": f"out of memory at {self.full[side, config]}"}
        elif self.failed.get(side, 0) >= FAILURES:
            r = {"note": "failed before"}
        elif left < self.wall.get(side, FIRST):
            r = {"note": "no time left"}
        else:
            r = self.start(side, path, batch, config, left)
        self.save("run", config=config, precision=self.a.precision, batch=batch, side=side, result=r)
        return r

    def start(self, side, path, batch, config, left):
        begin = time.monotonic()
        try:
            r = run(self.command(side, path, batch), self.a.threads, min(left, self.a.run_limit), {})
            self.results.append(r)
            self.failed[side] = 0
        except (RuntimeError, ValueError, OSError) as e:
            print(f"{config}, batch {batch}, {side}: {e}", file=sys.stderr, flush=True)
            r = {"note": "failed", "error": str(e)}
            if re.search("out.?of.?memory", str(e), re.IGNORECASE):
                r["note"], self.full[side, config] = "out of memory", batch
            elif "no result after" in str(e):
                r["note"] = f"no result in {time.monotonic() - begin:.0f} s"
            else:
                self.failed[side] = self.failed.get(side, 0) + 1
        self.wall[side] = r["wall_s"] = time.monotonic() - begin
        return r

    def peak(self):
        """GFLOP/s of the fastest large product that a run saw in the precision; 0 without one."""
        return max((gemm_of(r) for r in self.results), default=0)

    def row(self, config, batch, peer, ours, theirs):
        """A row of the table; ours and theirs are results, notes, or {} if not asked for."""
        ms = [r.get("step_ms") for r in (ours, theirs)]
        gflop, peak = ours.get("gflop_per_step"), self.peak()
        cells = {
            "config": config, "precision": self.a.precision, "batch": batch, "peer": peer,
            "step_ms": ms[0], "peer_step_ms": ms[1], "speed": ms[1] / ms[0] if all(ms) else None,
            "mb": memory_of(ours, self.a.device) if ms[0] else None,
            "peer_mb": memory_of(theirs, self.a.device) if ms[1] else None,
            "share": gflop / ms[0] * 1e3 / peak if gflop and peak and ms[0] else None,
            "peer_share": gflop / ms[1] * 1e3 / peak if gflop and peak and ms[1] else None,
        }
        self.save("row", **cells, note=ours.get("note"), peer_note=theirs.get("note"), peak_gflops=peak, gflop_per_step=gflop)
        show = lambda v, form: "" if v is None else form.format(v)
        return [
            config, self.a.precision, str(batch), peer,
            show(ms[0], "{:.2f}") or ours.get("note", ""), show(ms[1], "{:.2f}") or theirs.get("note", ""),
            show(cells["speed"], "{:.2f}"), show(cells["mb"], "{:.0f}"), show(cells["peer_mb"], "{:.0f}"),
            show(cells["share"], "{:.1%}"), show(cells["peer_share"], "{:.1%}"),
        ]

    def table(self):
        """Measures and prints all rows."""
        a, line = self.a, lambda cells: print("| " + " | ".join(cells) + " |", flush=True)
        line(HEAD)
        line(["---", "---", "--:", "---"] + ["--:"] * (len(HEAD) - 4))
        for path in a.configs:
            for batch in a.batches:
                config = pathlib.Path(path).stem
                ours = self.measure(OURS, path, batch) if a.only != "peer" else {}
                for peer in a.peers if a.only != "ours" else []:
                    line(self.row(config, batch, peer, ours, self.measure(peer, path, batch)))
                if a.only == "ours":
                    line(self.row(config, batch, "", ours, {}))

    def versions(self):
        """What the runs say of the device and the libraries."""
        about = "torch {torch}, CUDA {cuda}, cuDNN {cudnn}, {device_name}" if self.a.device == "cuda" else "torch {torch}"
        torch = next((about.format(**r) for r in self.results if "torch" in r), "no run of PyTorch")
        engine = next((r["engine"] for r in self.results if "engine" in r), "no run of geoalign")
        return f"geoalign: {engine}; {torch}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--configs", default="bench/albef-base,bench/albef-small", help="comma-separated files or names")
    p.add_argument("--batches", default="32,64,128,256",
                   help="comma-separated, ascending: after a batch without memory larger ones are left out")
    p.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    p.add_argument("--tf32", action="store_true", help="32-bit products of the peer may round their operands to TF32")
    p.add_argument("--peers", default="flash", help="comma-separated: " + ", ".join(PEERS))
    p.add_argument("--compile", action="store_true", help="the peer compiled as well")
    p.add_argument("--only", choices=["ours", "peer"], help="one side alone")
    p.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="overrides, repeatable")
    p.add_argument("--set-ours", action="append", default=[], metavar="PATH=VALUE", help="overrides for geoalign alone")
    p.add_argument("--steps", type=int, default=10, help="steps measured in a run, of which the median counts")
    p.add_argument("--warmup", type=int, default=3, help="steps before that")
    p.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: to try this program where there is no device")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the processor")
    p.add_argument("--trainer", default="bin/trainer")
    p.add_argument("--limit", type=float, default=600, help="seconds that all runs may take together")
    p.add_argument("--run-limit", type=float, default=180, help="seconds that one run may take")
    p.add_argument("--save", metavar="FILE", help="add runs and rows to a file, a line of JSON each")
    a = p.parse_args()
    a.configs, a.peers = [config_file(name) for name in a.configs.split(",")], a.peers.split(",")
    try:
        a.batches = [int(b) for b in a.batches.split(",")]
    except ValueError:
        p.error(f"--batches: {a.batches!r} is no list of numbers such as 32,64")
    if a.compile and "compiled" not in a.peers:
        a.peers.append("compiled")
    for k in a.peers:
        if k not in PEERS:
            p.error(f"--peers: {k} is none of {', '.join(PEERS)}")
    if a.only != "peer" and not os.access(a.trainer, os.X_OK):
        p.error(f"{a.trainer} is no program: build it with make, or name it with --trainer")
    about, date = card() if a.device == "cuda" else machine(a.threads), time.strftime("%Y-%m-%d %H:%M")
    print(f"{about}\n{date}, medians of {a.steps} steps after {a.warmup}\n", flush=True)
    s = Session(a)
    s.save("about", device=about, date=date, arguments={k: v for k, v in vars(a).items() if k != "save"})
    try:
        s.table()
    finally:
        print(f"\n{about}, {date}; {s.versions()}")
        print("speed ratio: time of a step, PyTorch / geoalign. % of peak: the products of geoalign's step in a step's time,\n"
              f"of {s.peak() / 1e3:.1f} TFLOP/s, the fastest large product in {a.precision} of any run; one count for both sides.")
        for k in a.peers if a.only != "ours" else []:
            print(f"{k}: {ABOUT[k]}")
    sys.exit(0 if s.results else 1)


if __name__ == "__main__":
    main()
