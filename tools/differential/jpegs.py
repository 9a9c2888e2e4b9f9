"""Writes JPEG files of every kind by Pillow, a fifth of them damaged, and the pixels that Pillow reads of them.

  python jpegs.py FOLDER CASES SEED

FOLDER/cases.json lists the files: settings, damage, the size, or the error where Pillow refuses a file. The pixels are in NAME.rgb.
"""
import io
import json
import pathlib
import struct
import sys
import warnings

import numpy as np
from PIL import Image

warnings.simplefilter("ignore")
folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)


def pick(*list):
    return list[rng.integers(len(list))]


def chance(n):
    return rng.integers(n) == 0


def picture():
    """Slopes, blocks and noise, height x width x 4."""
    w, h = (int(pick(1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 50, 64, 97, rng.integers(1, 200), rng.integers(1, 200))) for _ in range(2))
    y, x = np.mgrid[0:h, 0:w]
    c = np.stack([x * rng.integers(-9, 9) + y * rng.integers(-9, 9) + rng.integers(256) for _ in range(4)], -1)
    if chance(2):
        c = np.where(((x // 7 + y // 5) % 2 == 0)[..., None], c, 255 - c)
    c = c + rng.integers(0, pick(1, 2, 30, 256), c.shape)
    return (c % 256 if chance(2) else np.clip(c, 0, 255)).astype(np.uint8)


def segments(b):
    """Where the segments and the data of scans lie: code, begin, end."""
    at, list = 2, []
    while at + 4 <= len(b):
        code, end = b[at + 1], at + 2
        if code == 0xD9:
            break
        end = at + 2 + struct.unpack(">H", b[at + 2:at + 4])[0]
        list.append((code, at, end))
        at = end
        if code == 0xDA:
            while at + 1 < len(b) and not (b[at] == 0xFF and b[at + 1] != 0 and not 0xD0 <= b[at + 1] <= 0xD7):
                at += 1
            list.append((0, end, at))
    return list


def resampled(b):
    """The file with other sampling factors, so that its data means other blocks."""
    for code, at, _ in segments(b):
        if code in (0xC0, 0xC1, 0xC2):
            b = bytearray(b)
            for i in range(b[at + 9]):
                b[at + 11 + 3 * i] = int(pick(1, 1, 2, 4)) << 4 | int(pick(1, 1, 2, 4))
            return bytes(b)
    return b


def made(c):
    mode = pick("RGB", "RGB", "RGB", "L", "CMYK")
    o = dict(quality=int(rng.integers(1, 101)), progressive=bool(chance(3)), optimize=bool(chance(3)))
    if mode == "RGB":
        o["subsampling"] = pick("4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1", "4:2:0")
        if chance(8):
            o["keep_rgb"] = True
            o["subsampling"] = "4:4:4"
    if chance(4):
        o["restart_marker_blocks"] = int(rng.integers(1, 9))
    elif chance(6):
        o["restart_marker_rows"] = int(rng.integers(1, 3))
    if chance(20):
        o["qtables"] = [[int(v) for v in rng.integers(1, 256, 64)] for _ in range(2)]
    s = o.get("subsampling")
    if s in ("4:4:0", "4:1:1"):  # Pillow has no name for them
        o["subsampling"] = "4:2:0"
    image = Image.frombytes("CMYK", (c.shape[1], c.shape[0]), c.tobytes()) if mode == "CMYK" else Image.fromarray(c[..., :3]).convert(mode)
    f = io.BytesIO()
    image.save(f, "jpeg", **o)
    b = f.getvalue()
    if s in ("4:4:0", "4:1:1") or mode == "CMYK" and chance(2):  # and none for inks at half resolution
        for code, at, _ in segments(b):
            if code in (0xC0, 0xC2):
                b = bytearray(b)
                b[at + 11] = {"4:4:0": 0x12, "4:1:1": 0x41}.get(s) or int(pick(0x21, 0x12, 0x22))
                b = bytes(b)
        o["factors"] = s or "inks"
    if mode == "CMYK" and chance(2):  # the same data as YCCK
        at = b.find(b"Adobe")
        b = b[:at + 11] + b"\2" + b[at + 12:]
        o["ycck"] = True
    o["qtables"] = "qtables" in o
    if o["progressive"] and chance(4):  # the last scans are missing
        scans = [s for s in segments(b) if s[0] == 0xDA]
        if len(scans) > 1:
            b = b[:scans[int(rng.integers(1, len(scans)))][1]] + b"\xff\xd9"
            o["scans"] = "fewer"
    if chance(25) and not o["optimize"] and not o["progressive"]:  # as Motion JPEG has it
        b = b[:2] + b"".join(b[at:end] for code, at, end in segments(b) if code != 0xC4) + b"\xff\xd9"
        o["tables"] = "none"
    if chance(15):
        b = b[:2] + b"\xff\xe1\0\x08Exif\0\0" + b[2:]
    return b, o | dict(mode=mode)


def damaged(b):
    n = len(b)
    what = pick("bytes", "bytes", "bits", "cut", "trailer", "marker", "restart", "data", "factors", "inserted")
    match what:
        case "bytes":
            b = bytearray(b)
            for _ in range(rng.integers(1, 4)):
                b[rng.integers(2, n)] = int(rng.integers(256))
        case "bits":
            b = bytearray(b)
            for _ in range(rng.integers(1, 6)):
                b[rng.integers(2, n)] ^= 1 << int(rng.integers(8))
        case "cut":
            b = b[:int(rng.integers(1, n))] + pick(b"", b"", b"\xff\xd9")
        case "trailer":
            b += pick(b"trailer of a tool", bytes(40), b"\0\xff\0 and more", b, b"\xff\xd9")
        case "marker":  # a segment is lost, or there twice
            _, at, end = pick(*segments(b))
            b = b[:at] + pick(b"", b[at:end] * 2) + b[end:]
        case "restart":
            places = [i for i in range(n - 1) if b[i] == 0xFF and 0xD0 <= b[i + 1] <= 0xD7]
            if places:
                i = places[rng.integers(len(places))]
                b = b[:i] + pick(b"", b"\xff" + bytes([0xD0 + int(rng.integers(8))]), b[i:i + 2] * 2) + b[i + 2:]
        case "data":  # of a scan some is lost
            places = [s for s in segments(b) if s[0] == 0 and s[2] > s[1]]
            if places:
                _, at, end = places[rng.integers(len(places))]
                i = int(rng.integers(at, end))
                b = b[:i] + b[min(end, i + int(rng.integers(1, 50))):]
        case "factors":
            b = resampled(b)
        case "inserted":
            i = int(rng.integers(2, n))
            b = b[:i] + rng.integers(0, 256, rng.integers(1, 9)).astype(np.uint8).tobytes() + b[i:]
    return bytes(b), what


cases = []
for i in range(count):
    b, o = made(picture())
    what = ""
    if i % 5 == 4:
        b, what = damaged(b)
    name = f"{i:05d}.jpg"
    (folder / name).write_bytes(b)
    case = dict(name=name, settings=json.dumps(o), damage=what, error="", w=0, h=0)
    try:
        image = Image.open(io.BytesIO(b))
        if image.format not in ("JPEG", "MPO"):
            raise ValueError(image.format)
        image = image.convert("RGB")
        case["w"], case["h"] = image.size
        (folder / (name + ".rgb")).write_bytes(image.tobytes())
    except Exception as e:
        case["error"] = f"{type(e).__name__}: {e}"[:200]
    cases.append(case)
(folder / "cases.json").write_text(json.dumps(cases))
