"""Small JPEG files in the ways that photos are stored, for the tests of data/internal/jpeg, which compares with image/jpeg.

Made with Pillow 12.1 (libjpeg-turbo). Writes data/internal/jpeg/testdata/NAME.jpg, 61 x 43 pixels.

  python tools/goldens/jpeg.py
"""

import pathlib

import numpy as np
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/internal/jpeg/testdata"
W, H = 61, 43


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:H, 0:W]
    noise = np.random.default_rng(1).integers(0, 60, (H, W, 3))
    edges = 90 * ((x // 9 + y // 11) % 2)
    rgb = np.stack([3 * x + edges, 5 * y + edges, 160 - 2 * x + y], -1) * 3 // 4 + noise
    color = Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8))
    files = {}
    for ratio, name in enumerate(("444", "422", "420")):
        files["sequential" + name] = (color, {"quality": 85, "subsampling": ratio})
        files["progressive" + name] = (color, {"quality": 85, "subsampling": ratio, "progressive": True})
    files["restart"] = (color, {"quality": 90, "restart_marker_blocks": 2})
    files["progressive_restart"] = (color, {"quality": 90, "restart_marker_rows": 1, "progressive": True})
    files["optimised"] = (color, {"quality": 40, "optimize": True})
    files["grey"] = (color.convert("L"), {"quality": 80})
    files["progressive_grey"] = (color.convert("L"), {"quality": 97, "progressive": True})
    for name, (img, options) in files.items():
        img.save(OUT / (name + ".jpg"), **options)


main()
