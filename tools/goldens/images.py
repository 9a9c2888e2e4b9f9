"""Small image files of many kinds for the decoder tests of data, with Pillow's view of them.

Made with Pillow 13.0.0. Writes data/images/testdata/images/NAME.{png,jpg,webp} and NAME.rgb (raw RGB, 12 x 9
(odd.jpg: 11 x 7), transparent pixels over white).

  python tools/goldens/images.py
"""

import pathlib

import numpy as np
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/images/testdata/images"
W, H = 12, 9


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:H, 0:W]
    rgb = np.stack([20 * x, 25 * y, 120 + 5 * x - 6 * y], -1).astype(np.uint8)
    alpha = ((x * 23 + y * 5) % 256).astype(np.uint8)
    color = Image.fromarray(rgb)
    rgba = Image.fromarray(np.dstack([rgb, alpha]))
    palette = color.quantize(16)
    grey16 = Image.fromarray((257 * rgb[..., 0].astype(np.uint16)))
    files = {
        "color.png": (color, {}),
        "color.jpg": (color, {"quality": 95, "subsampling": 0}),
        "subsampled.jpg": (color, {"quality": 95, "subsampling": 2}),
        "odd.jpg": (color.crop((0, 0, 11, 7)), {"quality": 95, "subsampling": 2}),
        "wide.jpg": (color, {"quality": 95, "subsampling": 1}),
        "progressive.jpg": (color, {"quality": 95, "subsampling": 0, "progressive": True}),
        "grey.jpg": (color.convert("L"), {"quality": 95}),
        "cmyk.jpg": (color.convert("CMYK"), {"quality": 95}),
        "grey.png": (color.convert("L"), {}),
        "grey16.png": (grey16, {}),
        "palette.png": (palette, {}),
        "palette_transparent.png": (palette, {"transparency": 3}),
        "alpha.png": (rgba, {}),
        "grey_alpha.png": (rgba.convert("LA"), {}),
        "lossless.webp": (color, {"lossless": True}),
        "lossy.webp": (color, {"quality": 95}),
        "alpha_lossy.webp": (rgba, {"quality": 95}),
        "alpha.webp": (rgba, {"lossless": True, "exact": True}),
    }
    for name, (img, options) in files.items():
        img.save(OUT / name, **options)
        back = Image.open(OUT / name)
        if back.mode.startswith("I"):
            back = Image.fromarray((np.asarray(back) // 257).astype(np.uint8))
        back = back.convert("RGBA")
        white = Image.new("RGBA", back.size, "white")
        raw = np.asarray(Image.alpha_composite(white, back).convert("RGB"))
        (OUT / (name + ".rgb")).write_bytes(raw.tobytes())


main()
