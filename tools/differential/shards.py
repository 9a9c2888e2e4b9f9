"""Writes tar shards by webdataset and by tarfile with what tar files may have, and the samples that webdataset reads of them.

  python shards.py FOLDER CASES SEED

FOLDER/cases.json lists the files: settings, whether a shard is plain (every sample has an image and a caption), and the samples: key,
caption and the colour of the image, whose one pixel is its place among all images.
"""
import io
import json
import pathlib
import sys
import tarfile

import numpy as np
import webdataset
from PIL import Image

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)


def pick(*list):
    return list[rng.integers(len(list))]


def picture(colour, kind):
    b = io.BytesIO()
    Image.new("RGB", (2, 2), colour).save(b, kind, **(dict(lossless=True) if kind == "webp" else {}))
    return b.getvalue()


def members():
    """Names and bytes in order, and whether every sample is whole."""
    n = int(pick(1, 2, 5, 20))
    prefix = pick("", "", "./", "a/", "./a.b/", "deep/" * 30, "\u732b/", "n" * 120 + "/")
    ext = pick("png", "png", "webp", "gif", "bmp", "tif", "PNG")
    plain, out, holes = True, [], rng.integers(4) == 0
    for i in range(n):
        key = prefix + pick(f"{i:06d}", f"sample-{i}", f"{i}_\u00e9", f"k{i}" + "x" * int(pick(0, 0, 120)))
        colour = (int(rng.integers(256)), int(rng.integers(256)), i)
        parts = [(f"{key}.{ext}", picture(colour, {"tif": "tiff", "PNG": "png"}.get(ext, ext))), (f"{key}.{pick('txt', 'txt', 'TXT')}", pick(f"caption {i}", f" caption {i}\n", f"\u732b {i}").encode())]
        if rng.integers(4) == 0:
            parts.append((f"{key}.json", json.dumps({"caption": "other", "id": i}).encode()))
        if rng.integers(4) == 0:
            parts.append((f"{key}.cls", b"3"))
        if rng.integers(6) == 0:
            parts.append((f"{key}.seg.png", picture((9, 9, 9), "png")))
        if holes and rng.integers(3) == 0:
            parts.pop(int(rng.integers(2)))
            plain = False
        parts = [parts[k] for k in rng.permutation(len(parts))]
        out += parts
    return out, dict(prefix=prefix[:20], ext=ext, holes=bool(holes)), plain


cases = []
for i in range(count):
    files, o, plain = members()
    name = f"{i:05d}.tar"
    path = folder / name
    writer = o["writer"] = pick("webdataset", "tarfile", "tarfile")
    if writer == "webdataset":
        with webdataset.TarWriter(str(path), encoder=False) as w:
            keys = {}
            for n, b in files:
                base, ext = webdataset.tariterators.base_plus_ext(n)
                keys.setdefault(base, {"__key__": base})[ext] = b
            for s in keys.values():
                w.write(s)
    else:
        o["format"] = pick("USTAR", "GNU", "PAX")
        o["extra"] = pick("", "", "folders", "links", "meta")
        try:
            with tarfile.open(path, "w", format=getattr(tarfile, o["format"] + "_FORMAT"), pax_headers=pick(None, {"comment": "\u732b"}) if o["format"] == "PAX" else None) as t:
                if o["extra"] == "folders":
                    d = tarfile.TarInfo("some/folder")
                    d.type = tarfile.DIRTYPE
                    t.addfile(d)
                if o["extra"] == "meta":
                    m = tarfile.TarInfo("__meta__")
                    m.size = 3
                    t.addfile(m, io.BytesIO(b"abc"))
                for n, b in files:
                    m = tarfile.TarInfo(n)
                    m.size = len(b)
                    m.mtime = pick(0, 1.5, 2**33)
                    m.uid = pick(0, 1000, 2**22)
                    m.uname = pick("", "\u732b")
                    t.addfile(m, io.BytesIO(b))
                if o["extra"] == "links":
                    m = tarfile.TarInfo("link.png")
                    m.type, m.linkname = tarfile.SYMTYPE, files[0][0]
                    t.addfile(m)
        except (ValueError, OverflowError) as e:  # a name or a time that the format has no room for
            path.unlink(missing_ok=True)
            cases.append(dict(name=name, settings=json.dumps(o), plain=False, error=str(e)[:100], samples=[]))
            continue
    case = dict(name=name, settings=json.dumps(o), plain=plain and o.get("extra") != "links", error="", samples=[])
    for s in webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False):
        image = next((s[k] for k in ("png", "webp", "gif", "bmp", "tif") if k in s), None)
        if image is not None and "txt" in s:
            case["samples"].append(dict(key=s["__key__"], caption=s["txt"].decode(), colour=list(Image.open(io.BytesIO(image)).convert("RGB").getpixel((0, 0)))))
    cases.append(case)
(folder / "cases.json").write_text(json.dumps(cases))
