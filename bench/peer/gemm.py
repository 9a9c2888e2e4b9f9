"""Times the matrix products of training steps in float32 beside BLAS libraries: a table as in docs/benchmarks.md.

    go test -c -o kernel.test ./internal/kernel
    python bench/peer/gemm.py --ours ./kernel.test --threads 1 \
        --library onednn=libdnnl.so.3 --library mkl=libmkl_rt.so.3 --library openblas=libopenblas.so.0

GFLOP/s, the best of some rounds, in each of which every program computes each product by turns: of one thread by its own
time, of two (--threads 2) by the time of day, for which nothing else must run. numpy is needed, and the libraries, which come as wheels: onednn-cpu-gomp, mkl, scipy-openblas64. Other variables
reach them: GEOALIGN_CPU=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import time

NAMES = {"openblas": ["cblas_sgemm", "scipy_cblas_sgemm64_", "scipy_cblas_sgemm", "cblas_sgemm64_"],
         "mkl": ["cblas_sgemm"], "onednn": ["dnnl_sgemm"]}


def library(name, file):
    """Returns product(transA, transB, m, n, k, a, b, c) of row-major matrices without gaps, which returns a call."""
    lib = ctypes.CDLL(file)
    function = next(s for s in NAMES[name] if hasattr(lib, s))
    f, one, zero = getattr(lib, function), ctypes.c_float(1), ctypes.c_float(0)
    f.restype = None
    wide = name == "onednn" or function.endswith("64_")  # sizes of 64 bits
    size, address = ctypes.c_int64 if wide else ctypes.c_int32, lambda x: ctypes.c_void_p(x.ctypes.data)

    def product(ta, tb, m, n, k, a, b, c):
        if name == "onednn":
            head = [ctypes.c_char(b"T" if t else b"N") for t in (ta, tb)]
        else:  # CblasRowMajor, CblasNoTrans or CblasTrans
            head = [101, 112 if ta else 111, 112 if tb else 111]
        args = (*head, size(m), size(n), size(k), one, address(a), size(m if ta else k), address(b), size(k if tb else n),
                zero, address(c), size(n))
        return lambda: f(*args)

    return product


def seconds(clock, call, many):
    """Returns the least seconds of a call in 0.1 s."""
    best, start, each = 9e9, clock(), range(many)
    while clock() - start < 0.1:
        t = clock()
        for _ in each:
            call()
        best = min(best, (clock() - t) / many)
    return best


def serve(name, file):
    """Answers a line "TN 65 64 65" by GFLOP/s. What Python adds is the time of a product of one number."""
    import numpy as np
    product, clock = library(name, file), time.thread_time if os.environ["OMP_NUM_THREADS"] == "1" else time.perf_counter
    for line in sys.stdin:
        form, m, n, k = line.split()
        m, n, k = int(m), int(n), int(k)
        ta, tb, r = form[0] == "T", form[1] == "T", np.random.default_rng(1)
        a, b = (r.standard_normal(s, dtype=np.float32) for s in ((k, m) if ta else (m, k), (n, k) if tb else (k, n)))
        c = np.empty((m, n), np.float32)
        multiply = product(ta, tb, m, n, k, a, b, c)
        multiply()
        if not np.allclose(c[:8], ((a.T if ta else a)[:8] @ (b.T if tb else b)), atol=1e-2):
            sys.exit(f"{name}: wrong result")
        many = max(1, 2_000_000 // (m * n * k))
        print(2e-9 * m * n * k / (seconds(clock, multiply, many) - seconds(clock, product(0, 0, 1, 1, 1, a, b, c), 100)), flush=True)


def ours(program, threads, product):
    """Returns columns and figures of the table that our benchmark prints for one product."""
    run = subprocess.run([program, "-test.run", "xxx", "-test.bench", f"GEMMTable/threads={threads}$", "-test.benchtime", "1x"],
                         env={**os.environ, "GEMM_SHAPES": product}, capture_output=True, text=True, check=True)
    rows = [line.strip("| ").split(" | ") for line in run.stdout.splitlines() if line.startswith("| ")]
    return rows[0][1:], {r[0]: [float(x) for x in r[1:]] for r in rows[1:]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ours", required=True, help="the test program of internal/kernel")
    p.add_argument("--library", action="append", default=[], metavar="NAME=FILE", help="one of " + ", ".join(NAMES))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--shapes", default="", help='products whose names begin so, as in "TN,NT 65"')
    p.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(*a.serve)
    env = {**os.environ, **{v: str(a.threads) for v in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}}
    peers = {name: subprocess.Popen([sys.executable, __file__, "--ours", "", "--serve", name, file], env=env, text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
             for name, file in (x.split("=", 1) for x in a.library)}
    best = {}
    for _ in range(a.rounds):
        columns, table = ours(a.ours, a.threads, a.shapes)
        for product, figures in table.items():
            row = dict(zip(columns, figures))
            for name, peer in peers.items():
                print(product.replace("x", " "), file=peer.stdin, flush=True)
                row[name] = float(peer.stdout.readline())
            best[product] = {x: max(v, best.get(product, {}).get(x, 0)) for x, v in row.items()}
    print("| product |", *(f"{x} |" for x in [*columns, *peers, "fp32 of the best library"]))
    print("|---|" + "--:|" * (len(columns) + len(peers) + 1))
    for product, row in best.items():
        share = 100 * row["fp32"] / max((row[x] for x in peers), default=row["fp32"])
        print(f"| {product} |", *(f"{row[x]:.0f} |" for x in row), f"{share:.0f} % |")


if __name__ == "__main__":
    main()
