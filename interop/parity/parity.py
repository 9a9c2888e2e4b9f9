"""The published programs judge ours: scores, losses, gradients by name and recalls of shipped configurations.

    make parity PEERS=DIR PYTHON=venv/bin/python [ONLY=scan,vsepp] [GOLDEN=interop/parity/testdata] [ROUNDING=1]

DIR holds a working tree of each repository under its name, such as DIR/SCAN. For each case the program beside this file
writes what a configuration computes on made-up data; the module of the repository gets the same parameters and inputs, and
the two are compared. Prints a table, then what misses a bound, and exits with 1 if anything does. Repositories that are
not there are a line, and no failure. With ROUNDING the column of gradients also has how far those of the module in float32
are from its own in float64.
"""
import argparse
import importlib
import io
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

SMALL = ["-rows", "8", "-images", "6"]  # of goldens
HERE = pathlib.Path(__file__).parent
PEERS = ("scan", "vsepp", "bfan", "imram", "naaf", "sgraf", "vsrn", "esa", "clip_mtob", "moco_step", "swav", "reid", "sotalign", "asif", "simcse_step", "mcse", "sts", "simcse_sts",
         "mcse_sts", "albef_rerank", "albef", "tcl")


def compare(peer, case, path, folder, golden, precision):
    """Runs one case in this process and prints its figures as JSON; with a golden its numbers are written there. A precision is
    that of the module, 32 or 64 instead of its own; gradients in 32 are kept for those in 64."""
    warnings.simplefilter("ignore")
    import torch

    import published
    from ours import GRADIENT, Ours, keep, measure, own_rounding

    torch.set_num_threads(min(2, int(os.environ.get("OMP_NUM_THREADS", 2))))
    torch.manual_seed(1)
    p = importlib.import_module(peer)
    published.open_repository(folder / getattr(p, "BELOW", ""), p.PYTHON2)
    sys.argv = [sys.argv[0]]  # options of theirs read it
    double = precision == "64" if precision else getattr(p, "DOUBLE", True)
    ours = Ours(path, published.in_double() if double else torch.float32)
    with contextlib.redirect_stdout(io.StringIO()):
        result = p.run(ours, case)
    if golden:
        with open(golden, "w") as f:
            json.dump({"config": p.CASES[case][0], "sets": p.CASES[case][1], "flags": flags(p, golden)} | keep(ours, result), f, indent=1)
            f.write("\n")
    figures, missed = measure(ours, result, getattr(p, "GRADIENT", GRADIENT))
    if precision:
        figures["rounding"] = own_rounding(result, path + ".gradients", precision == "32")
    print(json.dumps([figures, missed]))


def flags(p, golden):
    """Arguments of the program that writes a file of ours: those of a golden make it small."""
    return getattr(p, "FLAGS", []) or (SMALL if golden and getattr(p, "SMALL", True) else [])


def commit(folder):
    return subprocess.run(["git", "-C", str(folder), "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True).stdout.strip() or "?"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peers", type=pathlib.Path, required=True, help="folder of the working trees")
    p.add_argument("--program", default="go run ./interop/parity", help="what writes a file of ours")
    p.add_argument("--only", default="", help="peers, by the names of their files here, with commas")
    p.add_argument("--golden", type=pathlib.Path, help="folder that gets a small file of numbers of the published programs for each case")
    p.add_argument("--rounding", action="store_true", help="compare the gradients of the modules in float32 with those in float64")
    p.add_argument("--case", nargs=5, help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.case:
        peer, case, path, golden, precision = o.case
        return compare(peer, case, path, o.peers, golden, precision)
    print("| repository, commit | case | configuration | scores | losses | gradients | recalls |\n|---|---|---|---|---|---|---|", flush=True)
    failed = []
    for peer in o.only.split(",") if o.only else PEERS:
        m = importlib.import_module(peer)
        folder = o.peers / m.FOLDER
        if not folder.is_dir():
            print(f"| {m.FOLDER} | is not in {o.peers} | | | | | |", flush=True)
            continue
        at = f"{getattr(m, 'OWNER', '')}{m.FOLDER}, {commit(folder)}"
        for case, (config, sets) in m.CASES.items():
            figures, missed = one(o, peer, case, config, sets, folder)
            failed += [f"{at}, {case}: {x}" for x in missed]
            number = lambda k: f"{figures[k]:.1e}" if k in figures else ""
            gradients = f"{number('gradients')} of {figures['parameters']}" if figures.get("parameters") else ""
            gradients += f" (its own {number('rounding')})" if "rounding" in figures else ""
            scores = number("scores") + (f" ({figures['undecided']})" if "undecided" in figures else "")
            what = " ".join([f"`{config}`" if config else "the defaults", *(f"`{s}`" for s in sets)])
            print(f"| {at} | {case} | {what} | {scores} | {number('loss')} | {gradients} | {figures.get('recalls', '')} |", flush=True)
    for line in failed:
        print(line)
    return 1 if failed else 0


def one(o, peer, case, config, sets, folder):
    """Figures of one case and what misses a bound."""
    with tempfile.TemporaryDirectory() as at:
        path = os.path.join(at, "ours.safetensors")
        golden = o.golden and o.golden / (re.sub(r"\W+", "-", f"{peer} {case}".lower()) + ".json") or ""
        extra = flags(importlib.import_module(peer), golden)
        made = subprocess.run([*o.program.split(), "-config", config, "-out", path, *extra, *sets], capture_output=True, text=True)
        if made.returncode:
            return {}, [f"our program: {made.stderr.strip()}"]
        for precision in ("32", "64") if o.rounding else ("",):
            got = subprocess.run([sys.executable, __file__, "--peers", str(folder), "--case", peer, case, path, str(golden), precision], capture_output=True, text=True)
            if got.returncode:
                return {}, [f"the published module: {got.stderr.strip()[-1500:]}"]
        return json.loads(got.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
