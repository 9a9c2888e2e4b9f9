"""Writes .parquet files by pyarrow, DuckDB, polars and fastparquet, and what pyarrow reads of them.

  python parquet.py FOLDER CASES SEED

FOLDER/cases.json lists the files: what a file is ("features": a column x of lists of numbers, "table": columns of
single values, "captions": paths of images and a string or a list of strings), the writer and its settings, and whether it is a plain file, which must be read. The rows of features are in
NAME.npy, null where they are no matrix; those of a table are texts in the list.
"""
import datetime
import decimal
import json
import pathlib
import sys

import duckdb
import fastparquet
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)


def pick(*list):
    return list[rng.integers(len(list))]


def arrow_options():
    """Settings of pyarrow's writer."""
    o = dict(
        version=pick("1.0", "2.4", "2.6"), compression=pick("none", "snappy", "gzip", "brotli", "zstd", "lz4"),
        data_page_version=pick("1.0", "2.0"), use_dictionary=bool(rng.integers(2)),
        row_group_size=pick(None, None, 37, 256), write_statistics=bool(rng.integers(2)),
        write_page_index=bool(rng.integers(2)), store_schema=bool(rng.integers(2)), write_page_checksum=bool(rng.integers(2)),
    )
    if rng.integers(3) == 0:
        o |= dict(data_page_size=pick(1, 100, 4000), write_batch_size=pick(1, 7, 100))
    return o


def matrix():
    """Rows of a matrix; now and then constant ones, which are encoded in few bytes."""
    n, d = int(pick(1, 2, 7, 63, 64, 65, 255, 700, 1500)), int(pick(1, 2, 5, 8, 17, 64))
    x = rng.standard_normal((n, d)).astype(np.float32)
    kind = rng.integers(4)
    if kind == 0:
        x[:] = x[0]
    elif kind == 1:
        x = np.round(x)
    return x


def features(name, path):
    """A file of features, its settings, and whether it must be read."""
    x = matrix()
    plain = True
    match name:
        case "pyarrow":
            o = arrow_options()
            dtype = pick(pa.float32(), pa.float32(), pa.float64(), pa.float16())
            shape = pick("list", "large_list", "fixed_size_list", "list_view")
            values = pa.array(x.reshape(-1).astype(dtype.to_pandas_dtype()), dtype)
            offsets = np.arange(0, x.size + 1, x.shape[1])
            if shape == "list":
                array = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
            elif shape == "large_list":
                array = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)
            elif shape == "fixed_size_list":
                array = pa.FixedSizeListArray.from_arrays(values, x.shape[1])
            else:
                shape = "list of required"
                array = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=pa.list_(pa.field("element", dtype, nullable=False)))
            if not o["use_dictionary"] and rng.integers(2):
                o["column_encoding"] = {"x.list.element": "BYTE_STREAM_SPLIT"}
            hole = pick(*[None] * 7, "null row", "empty row", "null value")
            if hole:
                rows, plain = array.to_pylist(), False
                i = int(rng.integers(len(rows)))
                rows[i] = None if hole == "null row" else [] if hole == "empty row" else [None] + rows[i][1:]
                if hole == "empty row" and shape == "fixed_size_list":
                    rows[i] = None
                array = pa.array(rows, array.type)
            columns = {"x": array}
            if rng.integers(2):
                columns = {"id": pa.array([f"row {i}" for i in range(len(x))]), **columns}
            nullable = bool(rng.integers(4))
            schema = pa.schema([pa.field(k, v.type, nullable=nullable or hole is not None) for k, v in columns.items()])
            pq.write_table(pa.table(columns, schema=schema), path, **o)
            if o["compression"] == "lz4":
                plain = False
            if "write_batch_size" in o and o["data_page_version"] == "2.0":
                plain = plain and True
            return o | dict(dtype=str(dtype), shape=shape, hole=hole), plain
        case "duckdb":
            table = pa.table({"x": pa.array(list(x.astype(pick(np.float32, np.float64))))})
            kind = pick("LIST", f"ARRAY {x.shape[1]}")
            cast = "x" if kind == "LIST" else f"x::FLOAT[{x.shape[1]}] AS x"
            o = dict(compression=pick("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"), parquet_version=pick("V1", "V2"), row_group_size=pick(2048, 122880))
            con = duckdb.connect()
            con.register("t", table)
            con.execute(f"COPY (SELECT {cast} FROM t) TO '{path}' (FORMAT parquet, " + ", ".join(f"{k} {v}" for k, v in o.items()) + ")")
            return o | dict(kind=kind), o["compression"] != "lz4_raw"
        case "polars":
            dtype = pick(polars.Float32, polars.Float64)
            kind = pick("List", "Array")
            s = polars.Series("x", x.tolist(), dtype=polars.List(dtype) if kind == "List" else polars.Array(dtype, x.shape[1]))
            o = dict(compression=pick("zstd", "snappy", "gzip", "brotli", "lz4", "uncompressed"), statistics=bool(rng.integers(2)), row_group_size=pick(None, 100), data_page_size=pick(None, 1000))
            polars.DataFrame({"x": s}).write_parquet(path, **o)
            return o | dict(kind=kind, dtype=str(dtype)), o["compression"] != "lz4"
    raise ValueError(name)


WORDS = ["", "a", "a red bus", "\u00e9t\u00e9", "\u732b", "\U0001f600", "tab\tand\nline", 'a "quote"', "x" * 300]


def column():
    """A column of single values: pyarrow's type, and a function of i."""
    kinds = {
        "string": (pa.string(), lambda i: pick(*WORDS)),
        "large_string": (pa.large_string(), lambda i: f"text {i}"),
        "int8": (pa.int8(), lambda i: int(rng.integers(-128, 128))),
        "int16": (pa.int16(), lambda i: int(rng.integers(-1 << 15, 1 << 15))),
        "int32": (pa.int32(), lambda i: int(rng.integers(-1 << 31, 1 << 31))),
        "int64": (pa.int64(), lambda i: int(rng.integers(-1 << 63, (1 << 63) - 1))),
        "uint8": (pa.uint8(), lambda i: int(rng.integers(1 << 8))),
        "uint32": (pa.uint32(), lambda i: int(rng.integers(1 << 32))),
        "uint64": (pa.uint64(), lambda i: int(rng.integers(1 << 63)) * 2 + 1),
        "float32": (pa.float32(), lambda i: float(np.float32(rng.standard_normal()))),
        "float64": (pa.float64(), lambda i: float(rng.standard_normal())),
        "bool": (pa.bool_(), lambda i: bool(rng.integers(2))),
        "decimal": (pa.decimal128(9, 2), lambda i: decimal.Decimal(int(rng.integers(-10**8, 10**8))).scaleb(-2)),
        "wide decimal": (pa.decimal128(30, 5), lambda i: decimal.Decimal(int(rng.integers(-10**8, 10**8))).scaleb(-5)),
        "date": (pa.date32(), lambda i: datetime.date(2020, 1, 1) + datetime.timedelta(i)),
        "timestamp": (pa.timestamp("us"), lambda i: datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=i)),
        "float16": (pa.float16(), lambda i: float(np.float16(rng.standard_normal()))),
        "binary": (pa.binary(), lambda i: bytes([i % 128, 7])),
    }
    name = pick(*kinds)
    return (name, *kinds[name])


# What a table of texts is for: these must be read.
SIMPLE = {"string", "large_string", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64", "bool", "decimal", "wide decimal"}


def table(name, path):
    n = int(pick(1, 2, 9, 64, 300, 1000))
    columns, kinds = {}, []
    for k in range(int(rng.integers(1, 4))):
        kind, dtype, make = column()
        values = [make(i) for i in range(n)]
        if rng.integers(3) == 0:
            values = [values[0]] * n
        if rng.integers(3) == 0:
            values = [None if rng.integers(4) == 0 else v for v in values]
        columns[f"c{k}"], kinds = pa.array(values, dtype), kinds + [kind]
    t = pa.table(columns)
    plain = set(kinds) <= SIMPLE
    o = dict(kinds=kinds)
    match name:
        case "pyarrow":
            o |= arrow_options()
            encodings = {}
            if not o["use_dictionary"]:
                for k, v in columns.items():
                    if v.type in (pa.string(), pa.large_string()):
                        encodings[k] = pick("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
                    elif pa.types.is_integer(v.type) and v.type.bit_width >= 8:
                        encodings[k] = pick("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
            pq.write_table(t, path, column_encoding=encodings or None, **{k: v for k, v in o.items() if k != "kinds"})
            o["encodings"] = encodings
            plain = plain and o["compression"] != "lz4" and not ("bool" in kinds and o["data_page_version"] == "2.0")
        case "duckdb":
            c = dict(compression=pick("uncompressed", "snappy", "gzip", "zstd", "brotli"), parquet_version=pick("V1", "V2"))
            con = duckdb.connect()
            con.register("t", t)
            con.execute(f"COPY (SELECT * FROM t) TO '{path}' (FORMAT parquet, " + ", ".join(f"{k} {v}" for k, v in c.items()) + ")")
            o |= c
        case "polars":
            c = dict(compression=pick("zstd", "snappy", "gzip", "brotli", "uncompressed"), row_group_size=pick(None, 100))
            polars.from_arrow(t).write_parquet(path, **c)
            o |= c
        case "fastparquet":
            keep = [k for k, kind in zip(columns, kinds) if kind not in ("wide decimal", "decimal", "date", "float16", "binary", "uint64", "uint32")] or ["c0"]
            frame = t.select(keep).to_pandas()
            for k in frame:
                if frame[k].dtype.name in ("str", "string", "large_string"):
                    frame[k] = frame[k].astype(object)
            c = dict(compression=pick("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI"), row_group_offsets=pick(50_000_000, [0, n // 2] if n > 1 else [0]))
            fastparquet.write(str(path), frame, **c)
            o |= c
    return o, plain


def captions(name, path):
    """Paths of images, each with a string or a list of strings, of which some are empty or null."""
    n = int(pick(1, 5, 64, 300))
    many = rng.integers(3) > 0
    values = [None if rng.integers(6) == 0 else
              [None if rng.integers(9) == 0 else f"caption {i} {j}" for j in range(rng.integers(4) if rng.integers(2) else 0)] if many else pick("a", f"caption {i}", "\u732b")
              for i in range(n)]
    if rng.integers(4) == 0:
        values = [[] if many else None] * n
    t = pa.table({"image": pa.array([f"{i}.png" for i in range(n)]), "caption": pa.array(values, pa.list_(pa.string()) if many else pa.string())})
    plain = True
    match name:
        case "pyarrow":
            o = arrow_options()
            pq.write_table(t, path, **o)
            plain = o["compression"] != "lz4"
        case "duckdb":
            o = dict(compression=pick("uncompressed", "snappy", "gzip", "zstd", "brotli"), parquet_version=pick("V1", "V2"))
            con = duckdb.connect()
            con.register("t", t)
            con.execute(f"COPY (SELECT * FROM t) TO '{path}' (FORMAT parquet, " + ", ".join(f"{k} {v}" for k, v in o.items()) + ")")
        case "polars":
            o = dict(compression=pick("zstd", "snappy", "gzip", "brotli", "uncompressed"), row_group_size=pick(None, 100))
            polars.from_arrow(t).write_parquet(path, **o)
    return o | dict(many=bool(many)), plain


def text(v):
    """A value as this program's tables have it."""
    if v is None:
        return ""
    if isinstance(v, bool):
        return "true" if v else "false"
    return v.decode() if isinstance(v, bytes) else str(v)


cases = []
for i in range(count):
    kind = pick("features", "features", "table", "captions")
    writer = pick(*(["pyarrow", "duckdb", "polars"] if kind != "table" else ["pyarrow", "duckdb", "polars", "fastparquet"]))
    name = f"{i:05d}.parquet"
    path = folder / name
    case = dict(name=name, kind=kind, writer=writer, plain=True, settings="", error="", rows=None)
    try:
        o, case["plain"] = dict(features=features, table=table, captions=captions)[kind](writer, path)
    except Exception as e:  # a combination that the writer does not have
        if path.exists():
            path.unlink()
        case["error"] = f"{type(e).__name__}: {e}"[:200]
        cases.append(case)
        continue
    case["settings"] = json.dumps(o, default=str)
    try:
        t = pq.read_table(path)
    except Exception as e:  # some of what one writer makes no other reads
        case["error"] = f"pyarrow reads it not: {type(e).__name__}: {e}"[:200]
        cases.append(case)
        continue
    if kind == "features":
        rows = t["x"].to_pylist()
        if rows and all(r and None not in r and len(r) == len(rows[0]) for r in rows):
            np.save(folder / (name + ".npy"), np.array(rows, np.float32))
            case["rows"] = len(rows)
    elif kind == "captions":
        rows = [v if isinstance(v, list) else [v] for v in t["caption"].to_pylist()]
        case["cells"] = [[c for c in row if c] for row in rows]
        case["rows"] = len(rows)
    else:
        case["columns"] = t.column_names
        case["cells"] = [[text(v) for v in t[c].to_pylist()] for c in t.column_names]
        case["floats"] = [pa.types.is_floating(t[c].type) for c in t.column_names]
        case["rows"] = t.num_rows
    cases.append(case)
(folder / "cases.json").write_text(json.dumps(cases))
