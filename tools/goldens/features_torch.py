"""Writes the .pt files of data/features/testdata: the matrix of features.py as torch.save writes it.

Run from the repository root: python tools/goldens/features_torch.py
It was run with torch 2.15.0.
"""
import os
import torch

folder = "data/features/testdata/"
x = torch.tensor([[0, -1.5, 2, 0.25], [1, 6e-8, -3, 100], [65504, 0.5, -0.125, 7]], dtype=torch.float64)
torch.save(x.float(), folder + "rows.pt")
torch.save(x[0].float(), folder + "row.pt")
torch.save(x.float().T.contiguous().T, folder + "transposed.pt")
torch.save({"image": x, "text": {"rows": x.half()}, "count": torch.tensor(3.0)}, folder + "named.pt")
os.makedirs(folder + "rows", exist_ok=True)
for name, value in (("r2", x[0]), ("r9", x[1]), ("r10", x[2:].half())):
    torch.save(value, f"{folder}rows/{name}.pt")
