"""Writes the .parquet files of data/features/testdata: the matrix of features.py in every form that
Arrow writes it in, and forms that are refused.

Run from the repository root: python tools/goldens/features_columns.py
It was run with pyarrow 26.0.1.
"""
import pyarrow as pa
import pyarrow.parquet as pq

folder = "data/features/testdata/"
x = [[0, -1.5, 2, 0.25], [1, 6e-8, -3, 100], [65504, 0.5, -0.125, 7]]
ids = pa.array(["a", "b", "c"])


def write(name, column, **options):
    pq.write_table(pa.table({"id": ids[:len(column)], "emb": column}), folder + name + ".parquet", **options)


write("float", pa.array(x, pa.list_(pa.float32())), compression="snappy", row_group_size=2)
write("double", pa.array(x, pa.list_(pa.float64())), compression="zstd", data_page_size=16)
write("fixed", pa.array(x, pa.list_(pa.float32(), 4)), compression="none", use_dictionary=False, data_page_version="2.0")
write("gzip", pa.array(x, pa.large_list(pa.float32())), compression="gzip")
write("null", pa.array([x[0], None, x[2]], pa.list_(pa.float32())))
write("nulls", pa.array([x[0], [1, None, 2, 3], x[2]], pa.list_(pa.float32())))
write("none", pa.array([x[0], [], x[2]], pa.list_(pa.float32())))
write("uneven", pa.array([x[0], [1, 2], x[2]], pa.list_(pa.float32())))
write("ints", pa.array([[1, 2]] * 3, pa.list_(pa.int64())))
write("empty", pa.array([], pa.list_(pa.float32())))
pq.write_table(pa.table({"image": pa.array(x, pa.list_(pa.float32())), "text": pa.array(x, pa.list_(pa.float64()))}), folder + "columns.parquet")
