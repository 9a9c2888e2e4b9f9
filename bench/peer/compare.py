"""geoalign and PyTorch side by side: the same training step, threads and batch.

  python bench/peer/compare.py --config configs/bench/albef-small.toml

Runs both in turn, so that a machine that slows down hits both, and prints samples per
second, peak memory and the ratio of every round. Build bin/trainer before.
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

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {
    "eager": [],
    "published": ["--layout", "reference", "--dropout", "native", "--malloc", "default"],
    "compiled": ["--compile"],
}
ABOUT = {
    "geoalign": "bin/trainer bench",
    "eager": "PyTorch eager, tuned: merged passes, own dropout, memory kept by malloc",
    "published": "PyTorch eager in the passes of the published code, torch's dropout, default malloc",
    "compiled": "as eager, layers through torch.compile",
}


def run(command, threads, limit):
    """The JSON a command prints, and the most memory it held (MB)."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
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


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", default="configs/bench/albef-small.toml")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--steps", type=int, default=5, help="steps measured per run")
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--peers", default="eager", help="comma-separated, first is what ratios are against: " + ", ".join(PEERS))
    p.add_argument("--trainer", default="bin/trainer")
    p.add_argument("--limit", type=int, default=600, help="seconds that a run may take")
    a = p.parse_args()
    peers = a.peers.split(",")
    for k in peers:
        if k not in PEERS:
            p.error(f"--peers: {k} is none of {', '.join(PEERS)}")
    if not os.access(a.trainer, os.X_OK):
        p.error(f"{a.trainer} is no program: build it with make, or name it with --trainer")

    common = ["--config", a.config, "--steps", str(a.steps), "--warmup", str(a.warmup)]
    commands = {"geoalign": [a.trainer, "bench", *common, "--json", "--quiet", "--set", f"compute.threads={a.threads}"]}
    for k in peers:
        commands[k] = [sys.executable, str(HERE / "albef.py"), *common, "--threads", str(a.threads), *PEERS[k]]

    print(f"{a.config}, {a.threads} threads, {a.rounds} rounds of {a.steps} steps after {a.warmup}")
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, Python {platform.python_version()}, load {os.getloadavg()[0]:.2f}\n", flush=True)
    print(f"{'round':>5}  {'':<10} {'step ms':>9} {'samples/s':>10} {'peak MB':>9} {'GEMM GFLOP/s':>13} {'ratio':>7}")
    results = {k: [] for k in commands}
    for i in range(a.rounds):
        for k, command in list(commands.items()):
            try:
                r = run(command, a.threads, a.limit)
            except (RuntimeError, ValueError) as e:
                if k != "compiled":
                    sys.exit(f"{k}: {e}")
                print(f"{i + 1:>5}  {k:<10} left out: {e}", flush=True)
                del commands[k]
                continue
            results[k].append(r)
            ours = results["geoalign"][i]
            speed = r.get("gemm_peak_gflops") or r.get("gemm_gflops")
            ratio = "" if k == "geoalign" else f"{ours['samples_per_second'] / r['samples_per_second']:.2f}"
            print(f"{i + 1:>5}  {k:<10} {r['step_ms']:>9.1f} {r['samples_per_second']:>10.2f} {r['rss_mb']:>9.0f} {speed:>13.1f} {ratio:>7}", flush=True)

    def median(k, key):
        return statistics.median(r[key] for r in results[k])

    print("\nmedians")
    ours = results["geoalign"]
    for k, rs in results.items():
        if not rs:
            continue
        print(f"  {k:<10} {median(k, 'samples_per_second'):.2f} samples/s, {median(k, 'rss_mb'):.0f} MB at most", end="")
        if k == "geoalign":
            print()
            continue
        speed = statistics.median(o["samples_per_second"] / r["samples_per_second"] for o, r in zip(ours, rs))
        print(f"; geoalign / {k}: speed {speed:.2f}, memory {median('geoalign', 'rss_mb') / median(k, 'rss_mb'):.2f}")
    print()
    for k, rs in results.items():
        if rs:
            what = rs[0]["engine"] if k == "geoalign" else f"torch {rs[0]['torch']} ({rs[0]['cpu']}), {rs[0]['import_rss_mb']:.0f} MB of it after import"
            print(f"  {k}: {ABOUT[k]}; {what}")


if __name__ == "__main__":
    main()
