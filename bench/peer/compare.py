"""geoalign and PyTorch side by side: the same training step, threads and batch.

  python bench/peer/compare.py --config configs/bench/albef-small.toml
  python bench/peer/compare.py --all --json bench.json

Runs them in turn, so that a machine that slows down hits all, each in a process of its
own, and prints every run and then medians over the rounds. Build bin/trainer before.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import settings  # noqa: E402, beside this file

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {
    "eager": [],
    "pruned": ["--layout", "pruned"],
    "published": ["--layout", "reference", "--dropout", "native", "--attention", "fused", "--malloc", "default"],
    "onednn": ["--gemm", "onednn"],
    "compiled": ["--compile"],
}
ABOUT = {
    "geoalign": "bin/trainer bench",
    "eager": "PyTorch eager, tuned by hand: the whole step, as a PyTorch user would write it for speed",
    "pruned": "as eager, without the work that no loss reads, which geoalign leaves out as well",
    "published": "PyTorch eager in the passes of the published code, torch's dropout, attention and malloc as they come",
    "onednn": "as eager, 32-bit matrix products by oneDNN instead of MKL",
    "compiled": "as eager, layers through torch.compile",
}
# Of the shipped files: steps, steps before that, and what a step of the peer takes in
# fp32 and bf16 (s) on two cores with AVX-512, for the time that is printed first.
PLANS = {
    "albef-small": (5, 2, 2.8, 1.5),
    "albef-base": (2, 1, 12, 6.5),
    "clip-small": (5, 2, 4.3, 2.3),
    "heads": (5, 2, 1.4, 0.8),
}
# glibc asks for huge pages, as geoalign does; ignored elsewhere.
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
START = 10  # seconds of a run beside its steps


def run(command, threads, limit, more):
    """The JSON a command prints, and the most memory it held (MB). more: its environment."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), **more)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        p = subprocess.Popen(command, stdout=out, stderr=err, env=env)
        end = time.monotonic() + limit
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                p.kill()
                os.wait4(p.pid, 0)
                p.returncode = -9
                raise RuntimeError(f"no result after {limit} s")
            time.sleep(0.05)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode:
            err.seek(0)
            raise RuntimeError(f"exit status {p.returncode}: {err.read().strip()[-800:]}")
        out.seek(0)
        r = json.load(out)
    r["rss_mb"] = usage.ru_maxrss / 1024
    return r


def gemm_of(r):
    """GFLOP/s of one large product in the process of a run."""
    return r.get("gemm_peak_gflops") or r.get("gemm_gflops") or 0


def median_of(runs, key):
    return statistics.median(r[key] for r in runs.values())


def ratio_of(ours, theirs):
    """The median over rounds of samples per second, ours / theirs."""
    return statistics.median(ours[i]["samples_per_second"] / theirs[i]["samples_per_second"] for i in theirs if i in ours)


class Bench:
    """The runs of one file."""

    def __init__(self, path, a):
        self.name, self.a = pathlib.Path(path).stem, a
        plan = PLANS.get(self.name, (5, 2, None, None))
        self.steps, self.warmup = a.steps or plan[0], plan[1] if a.warmup is None else a.warmup
        self.step_s = dict(zip(("fp32", "bf16"), plan[2:]))
        heads = settings.family(settings.load(path, a.set)) == "heads"  # which have nothing to prune, and no layers to compile
        self.peers = [k for k in a.peers if not (heads and k in ("pruned", "compiled"))]
        common = ["--config", str(path), "--steps", str(self.steps), "--warmup", str(self.warmup)]
        for text in a.set:
            common += ["--set", text]
        self.commands = {}  # (precision, side) -> command
        for precision in a.precisions:
            self.commands[precision, "geoalign"] = [
                a.trainer, "bench", *common, "--json", "--quiet",
                "--set", f"compute.threads={a.threads}", "--set", f"compute.precision={precision}"]
            for k in self.peers:
                if k == "onednn" and precision != "fp32":
                    continue  # where oneDNN multiplies anyway
                self.commands[precision, k] = [
                    sys.executable, str(HERE / "peer.py"), *common, "--threads", str(a.threads), "--precision", precision, *PEERS[k]]
        self.runs = {key: {} for key in self.commands}  # key -> round -> result
        self.failed = False

    def seconds(self):
        """What all runs take, or None."""
        if self.a.set or None in self.step_s.values():
            return None
        return self.a.rounds * sum(START + (self.steps + self.warmup) * self.step_s[p] for p, _ in self.commands)

    def measure(self):
        print(f"\n{self.name}: {self.a.rounds} rounds of {self.steps} steps after {self.warmup}")
        print(f"{'round':>5}  {'':<10} {'':<4} {'step ms':>9} {'samples/s':>10} {'peak MB':>9} {'GEMM GFLOP/s':>13} {'ratio':>7}", flush=True)
        for i in range(self.a.rounds):
            for (precision, side), command in list(self.commands.items()):
                try:
                    r = run(command, self.a.threads, self.a.limit, {} if side in ("geoalign", "published") else HUGE_PAGES)
                except (RuntimeError, ValueError) as e:
                    self.failed |= side != "compiled"
                    print(f"{i + 1:>5}  {side:<10} {precision} left out: {e}", flush=True)
                    del self.commands[precision, side]
                    continue
                self.runs[precision, side][i] = r
                ours = self.runs[precision, "geoalign"].get(i)
                ratio = f"{ours['samples_per_second'] / r['samples_per_second']:.2f}" if ours and side != "geoalign" else ""
                print(f"{i + 1:>5}  {side:<10} {precision} {r['step_ms']:>9.1f} {r['samples_per_second']:>10.2f} {r['rss_mb']:>9.0f} {gemm_of(r):>13.1f} {ratio:>7}", flush=True)

    def disturbed(self):
        """Runs whose large product, measured after the steps, was far from the best of its kind."""
        out = []
        for (precision, side), runs in self.runs.items():
            speeds = {i: gemm_of(r) for i, r in runs.items()}
            out += [f"{self.name} {precision} {side} round {i + 1}" for i, v in speeds.items() if v < 0.85 * max(speeds.values())]
        return out

    def rows(self):
        """A row of the summary for each precision and peer."""
        out = []
        own = self.runs.get(("fp32", "geoalign"))
        for (precision, side), theirs in self.runs.items():
            ours = self.runs[precision, "geoalign"]
            if side == "geoalign" or not theirs or not ours:
                continue
            out.append({
                "config": self.name, "precision": precision, "peer": side, "rounds": len(theirs), "steps": self.steps,
                "samples_per_second": median_of(ours, "samples_per_second"), "peer_samples_per_second": median_of(theirs, "samples_per_second"),
                "speed": ratio_of(ours, theirs), "mb": median_of(ours, "rss_mb"), "peer_mb": median_of(theirs, "rss_mb"),
                "peer_import_mb": median_of(theirs, "import_rss_mb"), "memory": median_of(ours, "rss_mb") / median_of(theirs, "rss_mb"),
                "own_fp32": ratio_of(ours, own) if own else None,
            })
        return out


def summary(rows):
    """The rows as a table in Markdown."""
    head = ["config", "precision", "peer", "samples/s", "peer's", "speed ratio", "MB", "peer's MB", "of it import", "memory ratio", "own fp32"]
    lines = [head, ["---", "---", "---"] + ["--:"] * (len(head) - 3)]
    for r in rows:
        lines.append([
            r["config"], r["precision"], r["peer"], f"{r['samples_per_second']:.2f}", f"{r['peer_samples_per_second']:.2f}", f"{r['speed']:.2f}",
            f"{r['mb']:.0f}", f"{r['peer_mb']:.0f}", f"{r['peer_import_mb']:.0f}", f"{r['memory']:.2f}",
            "" if r["own_fp32"] is None else f"{r['own_fp32']:.2f}"])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def machine(threads):
    """Processor, what it can do in bf16, threads, versions."""
    model, flags = platform.processor() or platform.machine(), set()
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        value = lambda key: next((s.partition(":")[2].strip() for s in info if s.startswith(key)), "")
        model, flags = value("model name") or model, set(value("flags").split())
    except OSError:
        pass
    known = [f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in flags]
    return f"{model} ({', '.join(known)}), {threads} threads, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", action="append", help="a file, repeatable (configs/bench/albef-small.toml)")
    p.add_argument("--all", action="store_true", help="every file of " + ", ".join(f"configs/bench/{k}.toml" for k in PLANS))
    p.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="overrides of the files for both sides, repeatable")
    p.add_argument("--precision", default="fp32,bf16", help="comma-separated: fp32, bf16")
    p.add_argument("--peers", default="eager,pruned", help="comma-separated: " + ", ".join(PEERS))
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--steps", type=int, help="steps measured in a run (5; of albef-base 2)")
    p.add_argument("--warmup", type=int, help="steps before that (2; of albef-base 1)")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--trainer", default="bin/trainer")
    p.add_argument("--limit", type=int, default=600, help="seconds that a run may take")
    p.add_argument("--json", metavar="FILE", help="save rows and runs")
    a = p.parse_args()
    a.peers, a.precisions = a.peers.split(","), a.precision.split(",")
    for what, have, got in (("--peers", PEERS, a.peers), ("--precision", ("fp32", "bf16"), a.precisions)):
        for k in got:
            if k not in have:
                p.error(f"{what}: {k} is none of {', '.join(have)}")
    if not os.access(a.trainer, os.X_OK):
        p.error(f"{a.trainer} is no program: build it with make, or name it with --trainer")
    files = a.config or ["configs/bench/albef-small.toml"]
    if a.all:
        files = [f"configs/bench/{k}.toml" for k in PLANS]

    about, date = machine(a.threads), time.strftime("%Y-%m-%d %H:%M")
    print(f"{about}\n{date}, load {os.getloadavg()[0]:.2f}")
    if os.getloadavg()[0] > 0.5:
        print("warning: the machine is busy; torch's threads wait for each other and suffer more from that than ours", file=sys.stderr)
    benches = [Bench(f, a) for f in files]
    times = [b.seconds() for b in benches]
    if None in times:
        print(f"{a.rounds * sum(len(b.commands) for b in benches)} runs; how long they take is known for the shipped files only")
    else:
        print(f"{a.rounds * sum(len(b.commands) for b in benches)} runs, about {sum(times) / 60:.0f} min on two cores with AVX-512: "
              + ", ".join(f"{b.name} {t / 60:.0f}" for b, t in zip(benches, times)))

    def save():
        if not a.json:
            return
        runs = [{"config": b.name, "precision": k[0], "side": k[1], "round": i + 1, **r} for b in benches for k, rs in b.runs.items() for i, r in rs.items()]
        with open(a.json, "w") as f:
            json.dump({"machine": about, "date": date, "rows": [r for b in benches for r in b.rows()], "runs": runs}, f, indent=1)

    for b in benches:
        b.measure()
        save()  # after every file, so that a run cut short keeps what it has

    print(f"\nmedians over rounds; speed ratio: samples per second, geoalign / peer; memory: largest resident memory of the process\n")
    print(summary([r for b in benches for r in b.rows()]), "\n")
    disturbed = [text for b in benches for text in b.disturbed()]
    if disturbed:
        print("something else ran on the machine during " + ", ".join(disturbed) + "\n")
    seen = {k[1]: r for b in benches for k, rs in b.runs.items() for r in rs.values()}
    for side, r in seen.items():
        what = r.get("engine", "") if side == "geoalign" else f"torch {r['torch']} ({r['cpu']})"
        print(f"{side}: {ABOUT[side]}; {what}")
    sys.exit(any(b.failed for b in benches))


if __name__ == "__main__":
    main()
