"""Search by FAISS over the data that the benchmarks of package search read.

  python bench/peer/search.py --data /tmp/search --make 1000000       # writes pool.npy, queries.npy
  GEOALIGN_SEARCH_DATA=/tmp/search go test ./search -run '^$' -bench Data -benchtime 1x
  GEOALIGN_SEARCH_CODES=bits GEOALIGN_SEARCH_DATA=/tmp/search go test ./search -run '^$' -bench Index -benchtime 1x
  python bench/peer/search.py --data /tmp/search --peers flat,ivf,ivfsq,fastscan,rabitq,hnsw,hnswlib

The pool is a smooth image of clusters in 24 dimensions, with noise in all 256: clusters touch, as
those of real features do. Rows are unit vectors. Prints one line for each peer and effort: build time, size,
recall of the 10 nearest, time of one query alone on one thread and in batches on all. Other unit rows, such as real
embeddings, are measured by putting them there. fastscan is IVF with PQ of 4 bits, rabitq IVF with RaBitQ of 1 bit; both
score 100 rows anew from the exact ones.
"""
import argparse
import os
import time

import numpy as np

WIDTH, CENTRES, LATENT, SPREAD, NOISE, K = 256, 3000, 24, 0.7, 0.1, 10


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def make(folder, n, queries):
    """A random network of two layers over points of few dimensions, which lie about centres."""
    os.makedirs(folder, exist_ok=True)
    r = np.random.default_rng(1)
    centre = r.standard_normal((CENTRES, LATENT), dtype=np.float32)
    share = r.dirichlet(np.full(CENTRES, 2.0))  # some subjects are frequent
    inner = r.standard_normal((LATENT, 2 * WIDTH), dtype=np.float32) / np.sqrt(LATENT)
    outer = r.standard_normal((2 * WIDTH, WIDTH), dtype=np.float32) / np.sqrt(2 * WIDTH)
    for name, count in ("pool", n), ("queries", queries):
        out = np.lib.format.open_memmap(os.path.join(folder, name + ".npy"), "w+", np.float32, (count, WIDTH))
        for at in range(0, count, 50_000):
            rows = min(50_000, count - at)
            z = centre[r.choice(CENTRES, size=rows, p=share)] + SPREAD * r.standard_normal((rows, LATENT), dtype=np.float32)
            x = np.tanh(z @ inner) @ outer
            out[at:at + rows] = unit(x + NOISE * r.standard_normal((rows, WIDTH), dtype=np.float32))
        out.flush()


def recall(found, want):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, want)])


clock = time.perf_counter


def best(f, repeats=3):
    least = np.inf
    for _ in range(repeats):
        begin = clock()
        f()
        least = min(least, clock() - begin)
    return least


class Graph:
    """A graph of hnswlib as FAISS's indexes are searched: on as many threads as there are queries, one alone on one."""

    ntotal = float("inf")

    def __init__(self, graph):
        self.graph = graph

    def search(self, queries, k):
        rows, distances = self.graph.knn_query(queries, k=k)
        return distances, rows.astype(np.int64)


def measure(name, index, set_effort, efforts, queries, want, threads, built):
    import faiss

    size = faiss.serialize_index(index).nbytes / 1e6 if index.ntotal <= 200_000 else float("nan")
    for effort in efforts:
        set_effort(effort)
        faiss.omp_set_num_threads(threads)
        found = index.search(queries, K)[1]
        batch = best(lambda: index.search(queries, K)) / len(queries)
        faiss.omp_set_num_threads(1)
        ones = [queries[q:q + 1] for q in range(min(200, len(queries)))]
        alone = best(lambda: [index.search(q, K) for q in ones]) / len(ones)
        print(f"{name} effort {effort}: recall {recall(found, want):.4f}, alone {1e3 * alone:.3f} ms, "
              f"batch {1e3 * batch:.4f} ms a query, built in {built:.1f} s, {size:.0f} MB", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, help="folder of pool.npy and queries.npy")
    p.add_argument("--make", type=int, default=0, metavar="ROWS", help="write the files first")
    p.add_argument("--queries", type=int, default=1000)
    p.add_argument("--peers", default="", help="of flat, ivf, ivfsq (codes of 8 bits), fastscan, rabitq, hnsw, hnswlib")
    p.add_argument("--rows", type=int, default=None, help="the first rows of the pool alone")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--cpu", action="store_true", help="time of the processor, which other work on the machine adds less to; with --threads 1")
    p.add_argument("--cells", type=int, default=2048)
    a = p.parse_args()
    if a.cpu:
        global clock
        clock = time.process_time
    if a.make:
        make(a.data, a.make, a.queries)
    peers = [x for x in a.peers.split(",") if x]
    if not peers:
        return
    import faiss  # which only the measurement needs

    faiss.omp_set_num_threads(a.threads)
    pool, queries = (np.ascontiguousarray(np.load(os.path.join(a.data, f + ".npy"))) for f in ("pool", "queries"))
    pool = pool[:a.rows]
    width = pool.shape[1]
    flat = faiss.IndexFlatIP(width)
    flat.add(pool)
    want = flat.search(queries, K)[1]
    if "flat" in peers:
        for n in (1, 64):
            print(f"flat: {1e3 * best(lambda: flat.search(queries[:n], K)) / n:.3f} ms a query in batches of {n}", flush=True)
    for name in peers:
        begin = clock()
        if name in ("ivf", "ivfsq"):
            quantizer = faiss.IndexFlatIP(width)
            if name == "ivf":
                index = faiss.IndexIVFFlat(quantizer, width, a.cells, faiss.METRIC_INNER_PRODUCT)
            else:
                index = faiss.IndexIVFScalarQuantizer(quantizer, width, a.cells, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
            index.cp.max_points_per_centroid = 64  # as geoalign takes
            index.train(pool)
            index.add(pool)
            built = clock() - begin
            measure(name, index, lambda e: setattr(index, "nprobe", e), (4, 8, 16, 32, 64), queries, want, a.threads, built)
        elif name == "hnsw":
            index = faiss.IndexHNSWFlat(width, 32, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = 100
            index.add(pool)
            built = clock() - begin
            measure(name, index, lambda e: setattr(index.hnsw, "efSearch", e), (16, 32, 64, 128, 256), queries, want, a.threads, built)
        elif name in ("fastscan", "rabitq"):
            quantizer = faiss.IndexFlatIP(width)
            if name == "fastscan":
                index = faiss.IndexIVFPQFastScan(quantizer, width, a.cells, width // 4, 4, faiss.METRIC_INNER_PRODUCT)
            else:
                index = faiss.IndexIVFRaBitQ(quantizer, width, a.cells, faiss.METRIC_INNER_PRODUCT)
                index.qb = 8  # bits of a query
            index.cp.max_points_per_centroid = 64
            index.train(pool)
            index.add(pool)
            refined = faiss.IndexRefineFlat(index, faiss.swig_ptr(pool))
            refined.k_factor = 10
            built = clock() - begin
            measure(name, refined, lambda e: setattr(index, "nprobe", e), (4, 8, 16, 32, 64, 128), queries, want, a.threads, built)
        elif name == "hnswlib":
            import hnswlib

            graph = hnswlib.Index(space="ip", dim=width)
            graph.init_index(len(pool), M=16, ef_construction=100)
            graph.set_num_threads(a.threads)
            graph.add_items(pool)
            built = clock() - begin
            measure(name, Graph(graph), graph.set_ef, (16, 32, 64, 128, 256), queries, want, a.threads, built)
        elif name != "flat":
            raise SystemExit(f"no peer {name!r}: have flat, ivf, ivfsq, fastscan, rabitq, hnsw, hnswlib")


if __name__ == "__main__":
    main()
