"""Photos from files to normalised floats of 224 x 224 pixels, by Pillow, OpenCV and torchvision, in turns with ours.

  python bench/peer/decode.py --photos /tmp/photos --make FOLDER      # writes 64 photos of 500 x 375: mosaics of FOLDER's
  go test -c -o /tmp/data.test ./data
  python bench/peer/decode.py --photos /tmp/photos --ours /tmp/data.test

Each decodes, resizes to a square by a bicubic filter with antialiasing (OpenCV, which has none: by areas), and normalises
the channels, on one thread. `--ours` runs BenchmarkPhotos of package data.
Prints images per second: the median of the rounds. Wheels: pillow or pillow-simd, opencv-python-headless, torch and torchvision;
what is not installed is left out.
"""
import argparse
import glob
import io
import os
import random
import re
import statistics
import subprocess
import time

import numpy as np

SIDE = 224
MEAN = np.float32([0.48145466, 0.4578275, 0.40821073])
STD = np.float32([0.26862954, 0.26130258, 0.27577711])


def make(folder, source, count=64):
    from PIL import Image
    os.makedirs(folder, exist_ok=True)
    random.seed(1)
    paths = sorted(glob.glob(os.path.join(source, "*.jpg")))
    for i in range(count):
        photo = Image.new("RGB", (500, 375))
        for y in range(0, 375, 128):
            for x in range(0, 500, 128):
                photo.paste(Image.open(random.choice(paths)), (x, y))
        photo.save(os.path.join(folder, f"{i}.jpg"), quality=90)


def pillow():
    from PIL import Image, __version__

    def run(b):
        m = Image.open(io.BytesIO(b)).convert("RGB").resize((SIDE, SIDE), Image.BICUBIC)
        return ((np.asarray(m, np.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)

    def draft(b):
        m = Image.open(io.BytesIO(b))
        m.draft("RGB", (SIDE, SIDE))
        m = m.convert("RGB").resize((SIDE, SIDE), Image.BICUBIC)
        return ((np.asarray(m, np.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)

    name = "pillow-simd" if "post" in __version__ else "pillow"
    return {name + " " + __version__: run, name + ", draft": draft}


def opencv():
    import cv2
    cv2.setNumThreads(1)
    scale, shift = 1 / (255 * STD), -MEAN / STD

    def run(b):
        m = cv2.cvtColor(cv2.imdecode(np.frombuffer(b, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        m = cv2.resize(m, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        return (m * scale + shift).astype(np.float32).transpose(2, 0, 1)

    return {"opencv " + cv2.__version__: run}


def torchvision():
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2 import functional as f
    torch.set_num_threads(1)

    def run(b):
        m = decode_jpeg(torch.frombuffer(bytearray(b), dtype=torch.uint8), mode=ImageReadMode.RGB)
        m = f.resize(m, [SIDE, SIDE], interpolation=f.InterpolationMode.BICUBIC, antialias=True)
        return f.normalize(m.to(torch.float32) / 255, MEAN.tolist(), STD.tolist())

    return {"torchvision " + torchvision.__version__: run}


def speed(run, files):
    start = time.process_time()
    for b in files:
        run(b)
    return len(files) / (time.process_time() - start)


def ours(binary, photos, seconds):
    out = subprocess.run([binary, "-test.run", "^$", "-test.bench", "Photos", "-test.benchtime", f"{seconds}s", "-test.cpu", "1"],
                         check=True, capture_output=True, text=True, env={**os.environ, "GEOALIGN_PHOTOS": os.path.abspath(photos)}).stdout
    return {"geoalign, " + name: float(v) for name, v in re.findall(r"BenchmarkPhotos/(\S+)\s.*?([\d.]+) images/s", out)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--photos", required=True, help="folder of .jpg files")
    p.add_argument("--make", help="write the photos from small ones of this folder, and end")
    p.add_argument("--ours", help="test binary of package data")
    p.add_argument("--rounds", type=int, default=5)
    o = p.parse_args()
    if o.make:
        return make(o.photos, o.make)
    files = [open(path, "rb").read() for path in sorted(glob.glob(os.path.join(o.photos, "*.jpg")))]
    peers, found = {}, {}
    for peer in pillow, opencv, torchvision:
        try:
            peers.update(peer())
        except ImportError as e:
            print(f"{peer.__name__}: left out ({e})")
    for run in peers.values():
        run(files[0])
    for _ in range(o.rounds):
        for name, run in peers.items():
            found.setdefault(name, []).append(speed(run, files))
        if o.ours:
            for name, v in ours(o.ours, o.photos, 1).items():
                found.setdefault(name, []).append(v)
    for name, values in found.items():
        print(f"{name:28} {statistics.median(values):8.0f} images/s   {1000 / statistics.median(values):6.3f} ms   {min(values):.0f} to {max(values):.0f}")


main()
