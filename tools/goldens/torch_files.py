"""Writes internal/torch/testdata: small files of torch.save and what is in them.

Run from the repository root: python tools/goldens/torch_files.py
It was run with torch 2.15.0.
"""
import argparse
import json
import torch

torch.manual_seed(0)
folder = "internal/torch/testdata/"
x = torch.tensor([[0, -1.5, 2, 0.25], [1, 6e-8, -3, 100], [65504, 0.5, -0.125, 7]])
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
with torch.no_grad():
    model[0].weight.copy_(x)
state = model.state_dict()
files = {
    "row": x[1],
    "rows": x,
    "transposed": x.t(),
    "state": state,
    "parameters": dict(model.named_parameters()),
    "checkpoint": {"epoch": 3, "lr": 0.5, "name": "a", "done": True, "none": None, "large": 1 << 40, "negative": -5,
                   "model": state, "moments": {0: [x[0], (x[2],)]}, "tied": [model[0].weight, model[0].weight]},
    "types": {str(t).split(".")[1]: x.to(t) for t in (torch.float64, torch.float32, torch.float16, torch.bfloat16)}
             | {str(t).split(".")[1]: torch.tensor([1, 0, 3]).to(t) for t in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)},
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 4),
    "arguments": {"arch": "a", "state_dict": state, "args": argparse.Namespace(lr=0.5, size=[3, 4])},
}
files["legacy"] = files["checkpoint"]
files["legacy_types"] = files["types"]
files["legacy_transposed"] = files["transposed"]
files["legacy_4"] = files["arguments"]  # by version 4 of pickles
files["pickle_4"] = files["arguments"]
expected = {}


def tensors(name, value):
    if torch.is_tensor(value):
        v = value.detach()
        expected[file].append({"name": name, "dtype": str(v.dtype).split(".")[1], "shape": list(v.shape),
                               "contiguous": v.is_contiguous(), "values": v.double().flatten().tolist()})
    elif isinstance(value, dict):
        for k, v in value.items():
            tensors(f"{name}.{k}" if name else str(k), v)
    elif isinstance(value, (list, tuple)):
        for k, v in enumerate(value):
            tensors(f"{name}.{k}" if name else str(k), v)


for file, value in files.items():
    torch.save(value, folder + file + ".pt", pickle_protocol=4 if file.endswith("_4") else 2, _use_new_zipfile_serialization=not file.startswith("legacy"))
    expected[file] = []
    tensors("", value)
torch.save(model, folder + "module.pt")
with open(folder + "files.json", "w") as f:
    json.dump(expected, f, indent=1)
