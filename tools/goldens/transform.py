"""Golden images for data/transform from Pillow and OpenCV.

Made with Pillow 13.0.0 and opencv-python-headless 5.0.0. Writes small raw RGB files to
data/transform/testdata: photo.rgb (40 x 30, drawn here) and one file for each operation. The
affine goldens follow ALBEF's calls of cv2.warpAffine (bilinear, constant border 128).

  python tools/goldens/transform.py
"""

import pathlib

import cv2
import numpy as np
from PIL import Image, ImageEnhance, ImageOps

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/transform/testdata"
W, H = 40, 30


def photo():
    """Smooth gradients, a hard-edged box and noise, in a range that leaves room to stretch."""
    y, x = np.mgrid[0:H, 0:W].astype(np.float64)
    rng = np.random.default_rng(1)
    img = np.stack([40 + 3 * x + y, 200 - 2 * y - x, 90 + 50 * np.sin(x / 4) * np.cos(y / 5)], -1)
    img[8:20, 12:25] = [230, 60, 20]
    return np.clip(img + rng.normal(0, 6, img.shape), 5, 240).astype(np.uint8)


def warp(img, m):
    return cv2.warpAffine(img, np.float32(m), (W, H), flags=cv2.INTER_LINEAR, borderValue=(128, 128, 128))


def centre(img, size, resample, resized=None, squash=False):
    """The rules of torchvision's Resize, to the side resized, and CenterCrop."""
    w, h = img.size
    side = resized or size
    w, h = (side, side) if squash else (side, int(side * h / w)) if w < h else (int(side * w / h), side)
    left, top = round((w - size) / 2), round((h - size) / 2)
    return img.resize((w, h), resample).crop((left, top, left + size, top + size))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    a = photo()
    p = Image.fromarray(a)
    rotation = cv2.getRotationMatrix2D((W / 2, H / 2), 21, 1)
    out = {
        "photo": a,
        "resize_16x16": p.resize((16, 16), Image.BICUBIC),
        "resize_64x48": p.resize((64, 48), Image.BICUBIC),
        "resize_40x11": p.resize((40, 11), Image.BICUBIC),
        "resize_7x30": p.resize((7, 30), Image.BICUBIC),
        "crop_5_3_21_17_to_24x24": p.crop((5, 3, 26, 20)).resize((24, 24), Image.BICUBIC),
        "bilinear_16x16": p.resize((16, 16), Image.BILINEAR),
        "bilinear_50x50": p.resize((50, 50), Image.BILINEAR),
        "centre_16x16": centre(p, 16, Image.BICUBIC),
        "centre_30x30": centre(p, 30, Image.BICUBIC),
        "centre_45x45": centre(p, 45, Image.BICUBIC),
        "centre_bilinear_17x17": centre(p, 17, Image.BILINEAR),
        "centre_21_16x16": centre(p, 16, Image.BICUBIC, 21),
        "squash_21_16x16": centre(p, 16, Image.BICUBIC, 21, squash=True),
        "centre_tall_17x17": centre(Image.fromarray(a.transpose(1, 0, 2)), 17, Image.BICUBIC),
        "autocontrast": ImageOps.autocontrast(p),
        "equalize": ImageOps.equalize(p),
        "brightness": ImageEnhance.Brightness(p).enhance(1.36),
        "sharpness": ImageEnhance.Sharpness(p).enhance(1.36),
        "shear_x": warp(a, [[1, 0.21, 0], [0, 1, 0]]),
        "shear_y": warp(a, [[1, 0, 0], [-0.21, 1, 0]]),
        "translate_x": warp(a, [[1, 0, -7], [0, 1, 0]]),
        "translate_y": warp(a, [[1, 0, 0], [0, 1, 7]]),
        "rotate": warp(a, rotation),
    }
    for name, img in out.items():
        (OUT / f"{name}.rgb").write_bytes(np.asarray(img).tobytes())


main()
