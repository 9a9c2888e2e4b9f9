"""Golden images for the colour operations of data/transform from torchvision and Pillow.

Made with torchvision 0.29.2 on Pillow 13.0.0 images, the path that MoCo v2 and TCL take:
ColorJitter and RandomGrayscale of torchvision, PIL.ImageFilter.GaussianBlur. Reads photo.rgb
(made by transform.py) and writes raw RGB files to data/transform/testdata, and cube.json: the
SHA-256 of each operation on the picture of all 16,777,216 colours (4096 x 4096, colour 0xRRGGBB
at pixel number 0xRRGGBB).

  python tools/goldens/jitter.py
"""

import hashlib
import json
import pathlib

import numpy as np
import torchvision.transforms.functional as F
from PIL import Image, ImageFilter

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/transform/testdata"
W, H = 40, 30


def blur(img, sigma):
    return img.filter(ImageFilter.GaussianBlur(radius=sigma))


def chain(img):
    """All of ColorJitter in an order of its own, then grey: hue, brightness, saturation, contrast."""
    img = F.adjust_hue(img, -0.07)
    img = F.adjust_brightness(img, 1.23)
    img = F.adjust_saturation(img, 0.71)
    return F.adjust_contrast(img, 1.37)


def main():
    p = Image.frombytes("RGB", (W, H), (OUT / "photo.rgb").read_bytes())
    tiny = p.crop((11, 7, 14, 9))  # 3 x 2: smaller than the filters
    out = {
        "brightness_0.6": F.adjust_brightness(p, 0.6),
        "contrast_0.6": F.adjust_contrast(p, 0.6),
        "contrast_1.4": F.adjust_contrast(p, 1.4),
        "saturation_0.6": F.adjust_saturation(p, 0.6),
        "saturation_1.4": F.adjust_saturation(p, 1.4),
        "hue_-0.1": F.adjust_hue(p, -0.1),
        "hue_0.1": F.adjust_hue(p, 0.1),
        "jitter": chain(p),
        "gray": F.rgb_to_grayscale(p, num_output_channels=3),
        "blur_0.1": blur(p, 0.1),
        "blur_1": blur(p, 1.0),
        "blur_1.7": blur(p, 1.7),
        "blur_2": blur(p, 2.0),
        "blur_5.3": blur(p, 5.3),
        "tiny": tiny,
        "tiny_blur_2": blur(tiny, 2.0),
    }
    for name, img in out.items():
        (OUT / f"{name}.rgb").write_bytes(np.asarray(img).tobytes())

    n = np.arange(1 << 24, dtype=np.uint32)
    cube = Image.fromarray(np.stack([n >> 16, n >> 8 & 255, n & 255], -1).astype(np.uint8).reshape(4096, 4096, 3))
    sums = {
        "gray": F.rgb_to_grayscale(cube, num_output_channels=3),
        "contrast_1.4": F.adjust_contrast(cube, 1.4),
        "saturation_0.83": F.adjust_saturation(cube, 0.83),
        "saturation_1.4": F.adjust_saturation(cube, 1.4),
        "hue_-0.1": F.adjust_hue(cube, -0.1),
        "hue_0": F.adjust_hue(cube, 0),
        "hue_0.1": F.adjust_hue(cube, 0.1),
        "hue_0.5": F.adjust_hue(cube, 0.5),
    }
    sums = {k: hashlib.sha256(np.asarray(v).tobytes()).hexdigest() for k, v in sums.items()}
    (OUT / "cube.json").write_text(json.dumps(sums, indent=1) + "\n")


main()
