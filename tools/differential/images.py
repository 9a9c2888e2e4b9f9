"""Writes image files of every kind by Pillow and by hand, and the pixels that Pillow reads of them.

  python images.py FOLDER CASES SEED

FOLDER/cases.json lists the files: what a file is, its format, and what is promised of its pixels: "exact", "lossy webp" or "jpeg". The
pixels are in NAME.rgb, turned by ImageOps.exif_transpose, over white where they are transparent, of 16 bits the higher 8. Where Pillow
refuses a file the error is in the list; "lenient" names a rule by which a file may be read all the same.
"""
import io
import json
import pathlib
import struct
import sys
import warnings
import zlib

import numpy as np
from PIL import Image, ImageOps

warnings.simplefilter("ignore")
folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)


def pick(*list):
    return list[rng.integers(len(list))]


def chance(n):
    return rng.integers(n) == 0


def picture():
    """Slopes, blocks and noise, height x width x 4."""
    w, h = (int(pick(1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 50, 64, 97)) for _ in range(2))
    y, x = np.mgrid[0:h, 0:w]
    c = np.stack([x * rng.integers(-9, 9) + y * rng.integers(-9, 9) + rng.integers(256) for _ in range(4)], -1)
    if chance(2):
        c = np.where(((x // 7 + y // 5) % 2 == 0)[..., None], c, 255 - c)
    c = c + rng.integers(0, pick(1, 2, 30, 256), c.shape)
    return (c % 256 if chance(2) else np.clip(c, 0, 255)).astype(np.uint8)


def exif(value, order=">"):
    """The TIFF structure of EXIF with the tag Orientation, in forms that cameras and tools write."""
    kind = pick(3, 3, 3, 4)
    entry = struct.pack(order + "HHI", 0x112, kind, 1) + (struct.pack(order + "HH", value, 0) if kind == 3 else struct.pack(order + "I", value))
    maker = struct.pack(order + "HHII", 0x10f, 2, 4, 0x41424300)
    entries = [maker, entry]
    return (b"MM\x00*" if order == ">" else b"II*\x00") + struct.pack(order + "IH", 8, len(entries)) + b"".join(entries) + struct.pack(order + "I", 0)


def xmp(value):
    form = pick('<rdf:Description tiff:Orientation="%d"/>', "<rdf:Description><tiff:Orientation>%d</tiff:Orientation></rdf:Description>")
    return ('<?xpacket begin=""?><x:xmpmeta xmlns:x="adobe:ns:meta/" xmlns:tiff="http://ns.adobe.com/tiff/1.0/">' + form % value + "</x:xmpmeta>").encode()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(c):
    """A PNG file of any type, made by hand: bits, colours, Adam7, transparent colours, metadata and endings."""
    h, w = c.shape[:2]
    kind, bits = pick((0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16))
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    low = rng.integers(0, 256, c.shape).astype(np.uint16)
    v = (c.astype(np.uint16) << 8 | low)[..., :channels] if bits == 16 else c[..., :channels].astype(np.uint16) >> (8 - bits)
    o = dict(kind=kind, bits=bits)
    palette = b""
    if kind == 3:
        n = int(rng.integers(1, (1 << bits) + 1))
        v = v % n
        palette = chunk(b"PLTE", rng.integers(0, 256, 3 * n).astype(np.uint8).tobytes())
        if chance(2):
            palette += chunk(b"tRNS", rng.integers(0, 256, int(rng.integers(1, n + 1))).astype(np.uint8).tobytes())
            o["transparent"] = True
    elif kind in (0, 2) and bits == 8 and chance(3):  # of fewer bits Pillow compares the colour with one that it has stretched
        palette = chunk(b"tRNS", struct.pack(f">{channels}H", *(int(k) for k in v[h // 2, w // 2])))
        o["transparent"] = True

    def rows(v):
        out = b""
        for row in v:
            row = row.reshape(-1)
            if bits == 16:
                b = row.astype(">u2").tobytes()
            elif bits == 8:
                b = row.astype(np.uint8).tobytes()
            else:
                b = np.packbits(((row[:, None] >> np.arange(bits - 1, -1, -1)) & 1).astype(np.uint8)).tobytes()
            out += b"\0" + b
        return out

    interlaced = chance(3)
    if interlaced:
        raw = b"".join(rows(v[y0::dy, x0::dx]) for y0, x0, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)) if v[y0::dy, x0::dx].size)
    else:
        raw = rows(v)
    o["interlaced"] = bool(interlaced)
    data = zlib.compress(raw, int(rng.integers(10)))
    meta, late, turn = b"", b"", int(rng.integers(1, 9))
    where = pick("", "", "eXIf", "xmp", "packed xmp", "raw", "packed raw", "both", "eXIf at the end")
    hexed = exif(turn).hex()
    lines = "\n".join(hexed[i:i + 72] for i in range(0, len(hexed), 72))
    raw_text = f"\nexif\n{len(hexed) // 2:8}\n{lines}\n".encode()
    if where == "eXIf":
        meta = chunk(b"eXIf", exif(turn, pick("<", ">")))
    elif where == "eXIf at the end":
        late = chunk(b"eXIf", exif(turn))
    elif where == "xmp":
        meta = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(turn))
    elif where == "packed xmp":
        meta = chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(xmp(turn)))
    elif where == "raw":
        meta = chunk(b"tEXt", b"Raw profile type exif\0" + raw_text)
    elif where == "packed raw":
        meta = chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw_text))
    elif where == "both":
        meta = chunk(b"eXIf", exif(turn)) + chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(turn % 8 + 1))
    o["metadata"] = where
    cuts = sorted(int(k) for k in rng.integers(0, len(data) + 1, rng.integers(0, 3)))
    idat = b"".join(chunk(b"IDAT", data[i:k]) for i, k in zip([0] + cuts, cuts + [len(data)]))
    body = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, bits, kind, 0, 0, int(interlaced))) + meta + palette + idat + late
    end = pick(*["whole"] * 6, "no end", "trailer")
    o["end"] = end
    return body + (b"" if end == "no end" else chunk(b"IEND", b"") + (b"trailer" if end == "trailer" else b"")), o, "exact"


def saved(image, kind, **o):
    b = io.BytesIO()
    image.save(b, kind, **o)
    return b.getvalue()


def jpeg(c):
    mode = pick("RGB", "RGB", "RGB", "L", "CMYK")
    o = dict(quality=int(rng.integers(5, 101)), progressive=bool(chance(3)), optimize=bool(chance(3)))
    if mode == "RGB":
        o["subsampling"] = pick("4:4:4", "4:2:2", "4:2:0", "4:2:0")
        if chance(8):
            o["keep_rgb"] = True
            o["subsampling"] = "4:4:4"
    if chance(4):
        o["restart_marker_blocks"] = int(rng.integers(1, 9))
    if chance(6):
        o["comment"] = b"a comment"
    where, turn = pick("", "", "exif", "xmp", "both", "split"), int(rng.integers(1, 10))
    if where in ("exif", "both"):
        o["exif"] = b"Exif\0\0" + exif(turn, pick("<", ">"))
    if where in ("xmp", "both"):
        o["xmp"] = xmp(turn % 9 + (where == "both"))
    b = saved(Image.fromarray(c[..., :3]).convert(mode) if mode != "CMYK" else Image.frombytes("CMYK", (c.shape[1], c.shape[0]), c.tobytes()), "jpeg", **o)
    if where == "split":
        e = exif(turn)
        b = b[:2] + b"".join(b"\xff\xe1" + struct.pack(">H", 8 + len(p)) + b"Exif\0\0" + p for p in (e[:13], e[13:])) + b[2:]
    o = {k: v if not isinstance(v, bytes) else len(v) for k, v in o.items()} | dict(mode=mode, metadata=where)
    return b, o, "jpeg"


def webp(c):
    alpha = chance(3)
    image = Image.fromarray(c if alpha else c[..., :3])
    o = dict(lossless=bool(chance(2)))
    if o["lossless"]:
        o["exact"] = bool(chance(2))
    else:
        o["quality"] = int(rng.integers(1, 101))
    where, turn = pick("", "", "exif", "xmp"), int(rng.integers(1, 9))
    if where == "exif":
        o["exif"] = pick(b"", b"Exif\0\0") + exif(turn, pick("<", ">"))
    elif where == "xmp":
        o["xmp"] = xmp(turn)
    frames = []
    if chance(3):
        for _ in range(int(rng.integers(1, 4))):
            d = c.copy()
            d[: max(1, c.shape[0] // 2), : max(1, c.shape[1] // 2)] = int(rng.integers(256))
            frames.append(Image.fromarray(d if alpha else d[..., :3]))
        o["minimize_size"] = bool(chance(2))
    b = saved(image, "webp", **o, **(dict(save_all=True, append_images=frames, duration=90) if frames else {}))
    promised = "exact" if o["lossless"] else "lossy webp"
    o = {k: v if not isinstance(v, bytes) else len(v) for k, v in o.items()} | dict(alpha=bool(alpha), frames=len(frames), metadata=where)
    if not frames and chance(3) and b[12:16] != b"VP8X":  # as other tools have it: a still picture in an animation, not on all of its canvas
        h, w = c.shape[:2]
        x, y = 2 * int(rng.integers(0, 5)), 2 * int(rng.integers(0, 5))
        W, H = w + x + int(rng.integers(0, 5)), h + y + int(rng.integers(0, 5))
        three = lambda n: struct.pack("<I", n)[:3]
        anmf = three(x // 2) + three(y // 2) + three(w - 1) + three(h - 1) + three(100) + b"\0" + b[12:]
        body = b"WEBPVP8X" + struct.pack("<IB3x", 10, 2 | (16 if alpha else 0)) + three(W - 1) + three(H - 1) + b"ANIM" + struct.pack("<IIH", 6, 0xff0000ff, 0) + b"ANMF" + struct.pack("<I", len(anmf)) + anmf
        b = b"RIFF" + struct.pack("<I", len(body)) + body
        o["placed"] = True
    return b, o, promised


def gif(c):
    mode = pick("P", "P", "L", "1")
    image = Image.fromarray(c[..., :3])
    image = image.quantize(int(pick(2, 5, 16, 256))) if mode == "P" else image.convert(mode)
    o = dict(interlace=int(chance(2)))
    if chance(3):
        o["transparency"] = 0
    if chance(3):
        o |= dict(save_all=True, append_images=[image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)], duration=50)
    b = saved(image, "gif", **o)
    o = {k: v if k != "append_images" else 1 for k, v in o.items()} | dict(mode=mode)
    if chance(3) and b[10] & 0x80 == 0x80:  # a larger canvas than the frame
        at = 13 + (3 << ((b[10] & 7) + 1))
        while b[at:at + 1] == b"!":
            at += 2
            while b[at]:
                at += b[at] + 1
            at += 1
        if b[at:at + 1] == b",":
            x, y = int(rng.integers(0, 5)), int(rng.integers(0, 5))
            w, h = struct.unpack("<HH", b[at + 5:at + 9])
            b = b[:6] + struct.pack("<HH", w + x + 2, h + y + 1) + b[10:at + 1] + struct.pack("<HH", x, y) + b[at + 5:]
            o["placed"] = True
    return b, o, "exact"


def bmp(c):
    mode = pick("1", "L", "P", "RGB", "RGBA")
    image = Image.fromarray(c[..., :3])
    image = image.quantize(200) if mode == "P" else Image.fromarray(c) if mode == "RGBA" else image.convert(mode)
    return saved(image, "bmp"), dict(mode=mode), "exact"


def tiff(c):
    mode = pick("1", "L", "P", "RGB", "RGBA", "I;16", "CMYK", "LA", "F")
    image = Image.fromarray(c[..., :3])
    match mode:
        case "P":
            image = image.quantize(200)
        case "RGBA":
            image = Image.fromarray(c)
        case "LA":
            image = Image.fromarray(c).convert("LA")
        case "I;16":
            image = Image.fromarray(c[..., 0].astype(np.uint16) * 257)
        case _:
            image = image.convert(mode)
    o = dict(compression=pick(None, None, "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg" if mode in ("L", "RGB") else None, "group4" if mode == "1" else None))
    if chance(3) and mode in ("L", "RGB", "RGBA"):
        o["tiffinfo"] = {274: int(rng.integers(1, 9))}
    if chance(5):
        o |= dict(save_all=True, append_images=[image])
    if chance(4) and o["compression"] in ("tiff_lzw", "tiff_adobe_deflate") and mode in ("L", "RGB", "RGBA"):
        o["tiffinfo"] = o.get("tiffinfo", {}) | {317: 2}
    b = saved(image, "tiff", **o)
    return b, {k: v if k != "append_images" else 1 for k, v in o.items()} | dict(mode=mode), "jpeg" if o["compression"] == "jpeg" else "exact"


def other(c):
    image = Image.fromarray(c[..., :3])
    kind = pick("avif", "jpeg2000", "ppm", "tga", "ico", "qoi")
    return saved(image, kind), dict(kind=kind), "none"


def damaged(b, o):
    """Another ending of the file: what is lost, and the file."""
    n = len(b)
    what = pick("cut", "cut", "end mark", "trailer", "byte")
    match what:
        case "cut":
            return what, b[:int(rng.integers(1, n))]
        case "end mark":
            return what, b[:-2]
        case "trailer":
            return what, b[:-2] + pick(b"trailer of a tool", bytes(40), b"\0\xff\0 and more")
        case "byte":
            at = int(rng.integers(12, n))
            return what, b[:at] + bytes([int(rng.integers(256))]) + b[at + 1:]


def pillow(b):
    """The pixels as the list of promises has them."""
    image = Image.open(io.BytesIO(b))
    image.load()
    deep = image.mode.startswith("I;16")
    image = ImageOps.exif_transpose(image)
    if deep:
        a = np.asarray(image).astype(np.uint16) >> 8
        return np.stack([a, a, a], -1).astype(np.uint8)
    if image.mode == "F":
        raise ValueError("numbers with a fraction have no colours")
    if image.has_transparency_data:
        a = np.asarray(image.convert("RGBA")).astype(int)
        v, w = a[..., :3], a[..., 3:]
        return ((v * w + 255 * (255 - w) + 127) // 255).astype(np.uint8)
    return np.asarray(image.convert("RGB"))


makers = dict(png=png, jpeg=jpeg, webp=webp, gif=gif, bmp=bmp, tiff=tiff, other=other)
cases = []
for i in range(count):
    kind = pick("png", "png", "png", "jpeg", "jpeg", "jpeg", "jpeg", "webp", "webp", "gif", "bmp", "tiff", "other")
    name = f"{i:05d}.bin"
    b, o, promised = makers[kind](picture())
    whole, what = b, ""
    if kind in ("png", "jpeg", "webp", "gif") and chance(4) and o.get("end", "whole") == "whole":
        what, b = damaged(b, o)
    case = dict(name=name, kind=kind, settings=json.dumps(o | dict(damage=what), default=str), promised=promised, damage=what, error="", lenient="", w=0, h=0)
    (folder / name).write_bytes(b)
    try:
        rgb = pillow(b)
    except Exception as e:
        case["error"] = f"{type(e).__name__}: {e}"[:200]
        rgb = None
    if rgb is None and kind == "jpeg" and what in ("end mark", "trailer") and not o["progressive"]:
        case["lenient"] = "a JPEG that is whole but for its end mark, of which Pillow wants a byte more"
        rgb = pillow(whole)
    if rgb is None and kind == "webp" and not what:
        raise AssertionError(case)
    if rgb is not None:
        (folder / (name + ".rgb")).write_bytes(rgb.tobytes())
        case["h"], case["w"] = rgb.shape[:2]
    cases.append(case)
(folder / "cases.json").write_text(json.dumps(cases))
