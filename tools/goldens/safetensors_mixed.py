"""Writes internal/safetensors/testdata/mixed.safetensors with the safetensors
library: one small tensor of every common type, a scalar, an empty tensor and
metadata. With an argument, instead reads that file and prints what it holds.

Run from the repository root: python tools/goldens/safetensors_mixed.py
"""
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

if len(sys.argv) > 1:
    with safe_open(sys.argv[1], "pt") as f:
        print(f.metadata())
        for k in f.keys():
            t = f.get_tensor(k)
            print(k, t.dtype, list(t.shape), t.flatten()[:4].tolist())
else:
    x = torch.tensor([[0.0, -1.5, 2.0], [65504.0, 6e-8, float("inf")]])
    save_file({
        "f64": torch.tensor([1e-3, -2.0], dtype=torch.float64), "f32": x, "f16": x.half(), "bf16": x.bfloat16(),
        "i64": torch.tensor([-5, 2**40]), "i32": torch.tensor([-5, 7], dtype=torch.int32),
        "i16": torch.tensor([-300, 300], dtype=torch.int16), "i8": torch.tensor([-5, 7], dtype=torch.int8),
        "u8": torch.tensor([0, 255], dtype=torch.uint8), "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(0.07), "empty": torch.zeros(0, 4),
    }, "internal/safetensors/testdata/mixed.safetensors", metadata={"format": "pt", "note": "mixed types"})
