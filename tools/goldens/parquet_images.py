"""Writes the .parquet files of data/testdata/parquet: six images with captions in every form that Arrow and
Hugging Face's datasets write them in.

Run from the repository root: python tools/goldens/parquet_images.py
It was run with pyarrow 26.0.1 and pillow 13.0.0.
"""
import io

import PIL
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

print(pa.__version__, PIL.__version__)
folder = "data/testdata/parquet/"


def png(i):
    """An image of 3x2 pixels, each (10 i, 20 i, 30 i)."""
    b = io.BytesIO()
    PIL.Image.new("RGB", (3, 2), (10 * i, 20 * i, 30 * i)).save(b, "png")
    return b.getvalue()


images = [png(i) for i in range(6)]
one = [f"Caption {i}." for i in range(6)]
many = [[f"Caption {i}, text {j}." for j in range(i % 3)] for i in range(6)]
group = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
structs = pa.array([{"bytes": b, "path": f"{i}.png"} for i, b in enumerate(images)], group)


def write(name, image, caption, **options):
    pq.write_table(pa.table({"label": pa.array(range(6)), "image": image, "caption": caption}), folder + name + ".parquet", **options)


write("struct", structs, pa.array(one), row_group_size=4)
write("lists", structs, pa.array(many, pa.list_(pa.string())), compression="zstd", data_page_size=1, write_batch_size=1, use_dictionary=False)
write("index", structs, pa.array(one), compression="none", data_page_size=1, write_batch_size=1, use_dictionary=False, write_page_index=True, data_page_version="2.0")
write("binary", pa.array(images, pa.large_binary()), pa.array(one, pa.large_string()))
write("paths", pa.array([f"images/{i}.png" for i in range(6)]), pa.array(one))
holes = [{"bytes": images[0], "path": None}, None, {"bytes": None, "path": "images/2.png"}, {"bytes": None, "path": None}, {"bytes": b"no image", "path": None}, {"bytes": images[5], "path": None}]
write("holes", pa.array(holes, group), pa.array(["zero", "one", "two", "three", None, " . "]))
