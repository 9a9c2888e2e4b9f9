"""Writes .parquet files as other programs write them: data/features/testdata/writers (lists of numbers), data/table/testdata
(columns of single values) and data/testdata/parquet/empties.parquet (lists of strings of which pages hold none).

Run from the repository root: python tools/goldens/parquet_writers.py
It was run with pyarrow 26.0.1, DuckDB 2.0.1, polars 2.1.0, fastparquet 2026.9.0 and pandas 3.1.1.
"""
import decimal
import pathlib

import duckdb
import fastparquet
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq

# Number k of row i, which FLOAT16 holds.
x = np.fromfunction(lambda i, k: (i * 7 + k * 3) % 64 / 8 - 4, (45, 6)).astype(np.float32)
lists = pa.array(list(x), pa.list_(pa.float32()))
folder = pathlib.Path("data/features/testdata/writers")
folder.mkdir(exist_ok=True)

con = duckdb.connect()
con.register("t", pa.table({"x": lists}))
for version in "V1", "V2":
    con.execute(f"COPY (SELECT x FROM t) TO '{folder}/duckdb_list_{version}.parquet' (FORMAT parquet, PARQUET_VERSION {version})")
con.execute(f"COPY (SELECT x::FLOAT[6] AS x FROM t) TO '{folder}/duckdb_array.parquet' (FORMAT parquet, COMPRESSION zstd)")
polars.DataFrame({"x": polars.Series(x.tolist(), dtype=polars.List(polars.Float32))}).write_parquet(folder / "polars_list.parquet")
polars.DataFrame({"x": polars.Series(x.tolist(), dtype=polars.Array(polars.Float64, 6))}).write_parquet(folder / "polars_array.parquet", row_group_size=20)
half = pa.array(list(x.astype(np.float16)), pa.list_(pa.float16()))
pq.write_table(pa.table({"x": half}), folder / "arrow_float16.parquet")
pq.write_table(pa.table({"x": half}), folder / "arrow_float16_split.parquet", use_dictionary=False, column_encoding={"x.list.element": "BYTE_STREAM_SPLIT"})
pq.write_table(pa.table({"x": pa.FixedSizeListArray.from_arrays(x.reshape(-1), 6)}), folder / "arrow_fixed.parquet", data_page_version="2.0", compression="brotli")
# Pages of a few values, of which some have none.
pq.write_table(pa.table({"x": pa.array(list(x[:20]) * 2 + list(x[40:]), pa.large_list(pa.float32()))}), folder / "arrow_empty_pages.parquet",
               data_page_version="2.0", data_page_size=1, write_batch_size=7, write_page_index=True)

folder = pathlib.Path("data/table/testdata")
folder.mkdir(exist_ok=True)
n = 9
t = pa.table({
    "text": pa.array([None if i == 4 else f"text {i}" for i in range(n)]),
    "score": pa.array([decimal.Decimal(i * 25 - 100).scaleb(-2) for i in range(n)], pa.decimal128(9, 2)),
    "wide": pa.array([decimal.Decimal(1 - i).scaleb(-5) for i in range(n)], pa.decimal128(30, 5)),
    "count": pa.array([(1 << 64) - 1 - i for i in range(n)], pa.uint64()),
    "half": pa.array([i / 4 for i in range(n)], pa.float16()),
    "day": pa.array(range(n), pa.date32()),
})
pq.write_table(t, folder / "arrow.parquet")
con.register("t", t.drop_columns(["half"]))
con.execute(f"COPY (SELECT *, (i / 4.0)::REAL AS half FROM (SELECT *, row_number() OVER () - 1 AS i FROM t)) TO '{folder}/duckdb.parquet' (FORMAT parquet)")
polars.from_arrow(t).write_parquet(folder / "polars.parquet")
fastparquet.write(str(folder / "fastparquet.parquet"), pd.DataFrame({"text": pd.Series(t["text"].to_pylist(), dtype=object), "count": np.arange(n, dtype=np.uint64) * 0 + (2**64 - 1) - np.arange(n, dtype=np.uint64)}))

captions = [[] if i % 3 else [f"Caption {i}."] for i in range(40)]
pq.write_table(pa.table({"image": [f"images/{i}.png" for i in range(40)], "caption": pa.array(captions, pa.list_(pa.string()))}),
               "data/testdata/parquet/empties.parquet", data_page_version="2.0", data_page_size=1, write_batch_size=1)
