"""JPEG files to RGB by Pillow, in turns with the decoder of package data/internal/jpeg, on one thread.

  python bench/peer/jpeg.py --photos /tmp/jpegs --make         # writes a folder of pictures for each kind
  go test -c -o /tmp/jpeg.test ./data/internal/jpeg
  python bench/peer/jpeg.py --photos /tmp/jpegs --ours /tmp/jpeg.test

The pictures are of 1000 x 750 pixels with the spectrum of photos, "small" ones of 500 x 375. Prints milliseconds an image, the least of the
rounds, and how many times as fast ours is. Wheels: numpy, pillow.
"""
import argparse
import glob
import io
import os
import re
import subprocess
import time

import numpy as np
from PIL import Image

KINDS = {
    "420": dict(quality=85, subsampling=2), "422": dict(quality=85, subsampling=1), "444": dict(quality=90, subsampling=0),
    "progressive": dict(quality=85, subsampling=2, progressive=True), "grey": dict(quality=85), "small": dict(quality=90, subsampling=2),
}


def make(folder, count=6, w=1000, h=750):
    rng = np.random.default_rng(0)
    f = np.hypot(np.fft.fftfreq(h)[:, None], np.fft.fftfreq(w)[None])
    f[0, 0] = 1

    def cloud(power):
        a = np.fft.ifft2(np.fft.fft2(rng.standard_normal((h, w))) / f**power).real
        return a / a.std()

    for i in range(count):
        light = cloud(1.1)
        a = 128 + 48 * np.stack([light + 0.5 * cloud(1.3) for _ in range(3)], -1)
        m = Image.fromarray(np.clip(a, 0, 255).astype(np.uint8))
        for kind, options in KINDS.items():
            os.makedirs(os.path.join(folder, kind), exist_ok=True)
            x = m.resize((w // 2, h // 2)) if kind == "small" else m.convert("L") if kind == "grey" else m
            x.save(os.path.join(folder, kind, f"{i}.jpg"), **options)


def pillow(folder):
    found = {}
    for kind in KINDS:
        paths = glob.glob(os.path.join(folder, kind, "*.jpg"))
        start = time.process_time()
        for path in paths:
            with open(path, "rb") as f:
                Image.open(io.BytesIO(f.read())).convert("RGB")
        found[kind] = 1000 * (time.process_time() - start) / len(paths)
    return found


def ours(binary, folder):
    out = subprocess.run([binary, "-test.run", "^$", "-test.bench", "Decode", "-test.benchtime", "3x", "-test.cpu", "1"],
                         check=True, capture_output=True, text=True, env={**os.environ, "GEOALIGN_PHOTOS": os.path.abspath(folder)}).stdout
    return {kind: float(v) for kind, v in re.findall(r"BenchmarkDecode/(\S+)\s.*?([\d.]+) ms/image", out)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--photos", required=True, help="folder of folders of .jpg files")
    p.add_argument("--make", action="store_true", help="write the pictures, and end")
    p.add_argument("--ours", help="test binary of package data/internal/jpeg")
    p.add_argument("--rounds", type=int, default=7)
    o = p.parse_args()
    if o.make:
        return make(o.photos)
    rounds = [(pillow(o.photos), ours(o.ours, o.photos)) for _ in range(o.rounds)]
    for kind in KINDS:
        a, b = (min(r[i][kind] for r in rounds) for i in range(2))
        print(f"{kind:12} pillow {a:7.3f} ms   ours {b:7.3f} ms   {a / b:.2f}")


main()
