"""Resampled position tables for encoders/positions_test.go.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/positions.py

It writes encoders/testdata/positions.json: the tables are (1+s*s, D), class token
first, and the grid is resampled by F.interpolate(mode="bicubic",
align_corners=False) in float64, as ALBEF does on a new resolution; "smooth" is the same with
antialias=True, as timm, open_clip and DINOv2 with registers do.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

gen = torch.Generator().manual_seed(5)
cases = []
for width, source, to in [(2, 3, 5), (3, 4, 4), (1, 5, 3), (1, 1, 3), (2, 2, 7), (1, 14, 16), (1, 4, 1)]:
    # Multiples of 1/64 are exact in float32 and short in JSON.
    table = torch.randint(-128, 128, (1 + source * source, width), generator=gen).double() / 64
    grid = table[1:].T.reshape(1, width, source, source)

    def resampled(smooth):
        out = F.interpolate(grid, size=(to, to), mode="bicubic", align_corners=False, antialias=smooth)
        return [float(f"{v:.9g}") for v in torch.cat([table[:1], out.reshape(width, to * to).T]).flatten().tolist()]

    cases.append({
        "width": width, "to": to,
        "table": table.flatten().tolist(),
        "want": resampled(False),
        "smooth": resampled(True),
    })
path = pathlib.Path("encoders/testdata/positions.json")
path.parent.mkdir(exist_ok=True)
path.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
