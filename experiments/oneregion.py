"""Writes image vectors and lists of their captions as files of data.kind = "regions", one region an image.

  python3 experiments/oneregion.py image.npy train.json val.json test.json OUT

image.npy has a row of features for each image, those of the three lists behind each other. A list is one of
{"image", "caption", ...} as data.kind = "captions" reads it. Needs NumPy.
"""
import json
import pathlib
import sys

import numpy as np


def main(image, lists, out):
    x = np.load(image, mmap_mode="r")
    out, at = pathlib.Path(out), 0
    out.mkdir(parents=True, exist_ok=True)
    for name, path in zip(("train", "dev", "test"), lists):
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        most = min(len(r["caption"]) for r in rows)
        np.save(out / f"{name}_ims.npy", np.ascontiguousarray(x[at:at + len(rows)], dtype=np.float32)[:, None])
        (out / f"{name}_caps.txt").write_text("".join(" ".join(t.split()) + "\n" for r in rows for t in r["caption"][:most]), encoding="utf-8")
        (out / f"{name}_ids.txt").write_text("".join(f"{at + i}\n" for i in range(len(rows))), encoding="utf-8")
        print(f"{name}: {len(rows)} images of {x.shape[1]} channels, {most} captions each")
        at += len(rows)
    if at != len(x):
        sys.exit(f"{image} has {len(x)} rows, the lists {at} images: other lists than those of the features?")


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:5], sys.argv[5])
