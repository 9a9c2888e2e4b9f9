"""Writes random pictures and what Pillow makes of them in other sizes, the width first.

  python resize.py FOLDER CASES SEED
"""
import json
import pathlib
import sys

import numpy as np
from PIL import Image

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)
cases = []
for i in range(count):
    w, h, W, H = (int(2 ** rng.uniform(0, 8)) for _ in range(4))
    a = rng.integers(0, 256, (h, w, 3)).astype(np.uint8)
    if i % 3 == 0:
        a = np.where(a > 127, 255, 0).astype(np.uint8)
    bilinear = bool(rng.integers(2))
    if bilinear:
        H = W  # as the pipelines of models have it
    kernel = Image.Resampling.BILINEAR if bilinear else Image.Resampling.BICUBIC
    # In one call Pillow 13 takes the height first where that is reduced much more (docs/interop.md).
    b = Image.fromarray(a).resize((W, h), kernel).resize((W, H), kernel)
    name = f"{i:05d}"
    (folder / (name + ".in")).write_bytes(a.tobytes())
    (folder / (name + ".out")).write_bytes(b.tobytes())
    cases.append(dict(name=name, w=w, h=h, to=[W, H], bilinear=bilinear))
(folder / "cases.json").write_text(json.dumps(cases))
