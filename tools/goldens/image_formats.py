"""Small image files for the decoder tests of data: formats beside JPEG, PNG and WebP, first pictures of animations, orientation wherever
programs write it, and files without an end mark, with Pillow's view of them.

Made with Pillow 13.0.0. Writes data/images/testdata/formats/NAME and NAME.rgb: width and height (two bytes each, the higher first) and raw
RGB, turned by ImageOps.exif_transpose, transparent pixels over white.

  python tools/goldens/image_formats.py
"""

import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/images/testdata/formats"
W, H = 12, 9


def saved(image, kind, **o):
    b = io.BytesIO()
    image.save(b, kind, **o)
    return b.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def exif(value):
    return b"MM\x00*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, value, 0, 0)


def xmp(text):
    return b'<x:xmpmeta xmlns:x="adobe:ns:meta/" xmlns:tiff="http://ns.adobe.com/tiff/1.0/"><rdf:Description ' + text + b"</rdf:Description></x:xmpmeta>"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:H, 0:W]
    rgb = np.stack([20 * x, 25 * y, 120 + 5 * x - 6 * y], -1).astype(np.uint8)
    color = Image.fromarray(rgb)
    rgba = Image.fromarray(np.dstack([rgb, ((x * 23 + y * 5) % 256).astype(np.uint8)]))
    other = color.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    plain = saved(color, "png")
    raw = exif(6).hex()
    raw = f"\nexif\n{len(raw) // 2:8}\n{raw[:40]}\n{raw[40:]}\n".encode()
    jpeg = saved(color, "jpeg", quality=95)
    webp = saved(rgba, "webp", lossless=True, exact=True)
    three = lambda n: struct.pack("<I", n)[:3]
    anmf = three(1) + three(2) + three(W - 1) + three(H - 1) + three(90) + b"\0" + webp[12:]
    placed = b"WEBPVP8X" + struct.pack("<IB3x", 10, 2 | 16) + three(W + 3) + three(H + 4) + b"ANIM" + struct.pack("<IIH", 6, 0, 0) + b"ANMF" + struct.pack("<I", len(anmf)) + anmf
    palette = color.quantize(16)
    gif = saved(palette, "gif", interlace=1)
    at = gif.index(b",", 13 + 48)
    files = {
        "animated.webp": saved(color, "webp", save_all=True, append_images=[other], lossless=True, duration=90),
        "animated_lossy_alpha.webp": saved(rgba, "webp", save_all=True, append_images=[other], quality=90, duration=90),
        "placed.webp": b"RIFF" + struct.pack("<I", len(placed)) + placed,
        "xmp.webp": saved(color, "webp", lossless=True, xmp=xmp(b'tiff:Orientation="8">')),
        "plain.gif": gif,
        "transparent.gif": saved(palette, "gif", transparency=3),
        "animated.gif": saved(palette, "gif", save_all=True, append_images=[other.quantize(16)], duration=50),
        "placed.gif": gif[:6] + struct.pack("<HH", W + 5, H + 4) + gif[10:at + 1] + struct.pack("<HH", 3, 2) + gif[at + 5:],
        "no_end.gif": gif[:-2],
        "plain.bmp": saved(color, "bmp"),
        "palette.bmp": saved(palette, "bmp"),
        "lzw.tif": saved(color, "tiff", compression="tiff_lzw"),
        "deflate_turned.tif": saved(color, "tiff", compression="tiff_adobe_deflate", tiffinfo={274: 6, 317: 2}),
        "grey.tif": saved(color.convert("L"), "tiff"),
        "no_end.jpg": saved(Image.new("RGB", (W, H), (120, 60, 30)), "jpeg")[:-2],
        "trailer.jpg": jpeg[:-2] + b"a trailer in the place of the mark of the end",
        "cmyk_trailer.jpg": saved(color.convert("CMYK"), "jpeg", quality=95)[:-2] + b"trailer",
        "narrow.jpg": saved(color.crop((0, 0, 3, 9)), "jpeg", quality=95, subsampling=2),
        "xmp.jpg": saved(color, "jpeg", quality=95, xmp=xmp(b"><tiff:Orientation>6</tiff:Orientation>")),
        "exif_over_xmp.jpg": saved(color, "jpeg", quality=95, exif=b"Exif\0\0" + exif(1), xmp=xmp(b'tiff:Orientation="6">')),
        "split_exif.jpg": jpeg[:2] + b"".join(b"\xff\xe1" + struct.pack(">H", 8 + len(p)) + b"Exif\0\0" + p for p in (exif(8)[:11], exif(8)[11:])) + jpeg[2:],
        "raw_exif.png": plain[:33] + chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw)) + plain[33:],
        "raw_exif_plain.png": plain[:33] + chunk(b"tEXt", b"Raw profile type exif\0" + raw) + plain[33:],
        "xmp.png": plain[:33] + chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(b'tiff:Orientation="5">')) + plain[33:],
        "xmp_packed.png": plain[:33] + chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(xmp(b'tiff:Orientation="7">'))) + plain[33:],
        "no_end.png": plain[:-12],
        "cut_end.png": plain[:-5],
    }
    for name, b in files.items():
        (OUT / name).write_bytes(b)
        # Pillow wants a byte more than the last bits of some files take.
        image = Image.open(io.BytesIO(b + b"\xff\xd9" if name == "no_end.jpg" else b))
        image.load()
        image = ImageOps.exif_transpose(image).convert("RGBA")
        a = np.asarray(image).astype(int)
        pixels = ((a[..., :3] * a[..., 3:] + 255 * (255 - a[..., 3:]) + 127) // 255).astype(np.uint8)
        (OUT / (name + ".rgb")).write_bytes(struct.pack(">HH", image.width, image.height) + pixels.tobytes())


main()
