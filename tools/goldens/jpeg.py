"""Small JPEG files in the ways that photos are stored, whole and damaged, with what Pillow reads of them.

Made with Pillow 13.0.0 (libjpeg-turbo 3.2.0). Writes data/internal/jpeg/testdata/NAME.jpg, most of 61 x 43 pixels, and pixels.txt: lines of
a file, its length where it is cut, changes "place=byte ..." and the check sum (CRC-32) of the RGB pixels, or "refused".

  python tools/goldens/jpeg.py
"""

import io
import pathlib
import struct
import warnings
import zlib

import numpy as np
from PIL import Image

warnings.simplefilter("ignore")
OUT = pathlib.Path(__file__).resolve().parents[2] / "data/internal/jpeg/testdata"
W, H = 61, 43


def saved(img, **options):
    f = io.BytesIO()
    img.save(f, "jpeg", **options)
    return f.getvalue()


def header(b, changes):
    """The file with other bytes in the header of its frame, by their places in it."""
    at = max(b.find(b"\xff\xc0"), b.find(b"\xff\xc2"))
    b = bytearray(b)
    for place, value in changes.items():
        b[at + place] = value
    return bytes(b)


def without(b, code):
    while (at := b.find(bytes([0xFF, code]))) > 0:
        b = b[:at] + b[at + 2 + struct.unpack(">H", b[at + 2:at + 4])[0]:]
    return b


def scans(b, n):
    """The file without all but its first scans."""
    at = 0
    for _ in range(n + 1):
        at = b.find(b"\xff\xda", at + 1)
    return b[:at] + b"\xff\xd9"


def pixels(b):
    try:
        return f"{zlib.crc32(Image.open(io.BytesIO(b)).convert('RGB').tobytes()):08x}"
    except Exception:
        return "refused"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:H, 0:W]
    noise = rng.integers(0, 60, (H, W, 3))
    edges = 90 * ((x // 9 + y // 11) % 2)
    rgb = np.clip(np.stack([3 * x + edges, 5 * y + edges, 160 - 2 * x + y], -1) * 3 // 4 + noise, 0, 255).astype(np.uint8)
    color, smooth = Image.fromarray(rgb), Image.fromarray(rgb - noise.astype(np.uint8) // 2)
    ink = Image.fromarray(np.dstack([rgb, 255 - rgb[..., :1]]), "CMYK")
    files = {}
    for ratio, name in enumerate(("444", "422", "420")):
        files["sequential" + name] = saved(color, quality=85, subsampling=ratio)
        files["progressive" + name] = saved(color, quality=85, subsampling=ratio, progressive=True)
    files["restart"] = saved(color, quality=90, restart_marker_blocks=2)
    files["progressive_restart"] = saved(color, quality=90, restart_marker_rows=1, progressive=True)
    files["optimised"] = saved(color, quality=40, optimize=True)
    files["coarse"] = saved(color, quality=1)
    files["grey"] = saved(color.convert("L"), quality=80)
    files["progressive_grey"] = saved(color.convert("L"), quality=97, progressive=True)
    files["rgb"] = saved(color, quality=85, keep_rgb=True)
    files["cmyk"] = saved(ink, quality=85)
    files["ycck420"] = header(saved(ink, quality=85).replace(b"Adobe\0d\0\0\0\0\0", b"Adobe\0d\0\0\0\0\2"), {11: 0x22, 20: 0x22})
    files["sequential440"] = header(files["sequential420"], {11: 0x12})
    files["sequential411"] = header(files["sequential420"], {11: 0x41})
    files["progressive440"] = header(files["progressive420"], {11: 0x12})
    files["narrow"] = saved(color.crop((0, 0, 1, 43)), quality=85)
    files["flat"] = saved(color.crop((0, 0, 61, 1)), quality=85, progressive=True)
    files["motion"] = without(saved(color, quality=75), 0xC4)
    for n in 1, 2, 4, 6:
        files[f"scans{n}"] = scans(saved(smooth, quality=70, progressive=True), n)
    files["no_end"] = files["sequential420"][:-2] + b"a trailer"
    for n in 2, 4, 6:
        files[f"scans_fine{n}"] = scans(saved(smooth, quality=96, subsampling=0, progressive=True), n)
    b = files["progressive420"]
    at = b.rfind(b"\xff\xda")
    files["progressive_twice"] = b[:-2] + b[at:]
    b = files["restart"]
    for name, old, new in ("prior", 3, b"\xff\xd1\xff\xd3"), ("before", 3, b"\xff\xd2\xff\xd3"), ("next", 2, b"\xff\xd3"), ("second", 2, b"\xff\xd4"), ("far", 2, b"\xff\xd6"), ("lost", 4, b""):
        files["restart_" + name] = b.replace(bytes([0xFF, 0xD0 + old]), new, 1)
    b = files["sequential420"]
    at = b.find(b"\xff\xda")
    files["swapped"] = b[:at + 5] + b[at + 7:at + 9] + b[at + 5:at + 7] + b[at + 9:]
    lines = []
    for name, b in files.items():
        (OUT / (name + ".jpg")).write_bytes(b)
        lines.append(f"{name} {len(b)} - {pixels(b)}")
        for i in range(12):
            c, cut, changes = bytearray(b), len(b), {}
            for _ in range(rng.integers(1, 4)):
                at = int(rng.integers(2, len(b)))
                changes[at] = int(rng.integers(256)) if i % 2 else b[at] ^ 1 << int(rng.integers(8))
                c[at] = changes[at]
            if i % 6 == 5:
                cut = int(rng.integers(2, len(b)))
                changes = {at: v for at, v in changes.items() if at < cut}
            lines.append(f"{name} {cut} {','.join(f'{at}={v}' for at, v in changes.items()) or '-'} {pixels(bytes(c[:cut]))}")
    (OUT / "pixels.txt").write_text("\n".join(lines) + "\n")


main()
