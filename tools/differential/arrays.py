"""Writes arrays by numpy, safetensors and torch, and the rows that these read of them.

  python arrays.py FOLDER CASES SEED

FOLDER/cases.json lists the files: the tensor to be read, whether it is a plain matrix of floats, which must be read, and what the writer's
own reader says where it refuses the file. Rows are in NAME.npy, as float32, one after another.
"""
import io
import json
import pathlib
import sys
import warnings
import zipfile

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

warnings.simplefilter("ignore")
folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)
torch.manual_seed(seed)


def pick(*list):
    return list[rng.integers(len(list))]


def matrix():
    n, d = int(pick(1, 2, 3, 17, 64, 200)), int(pick(1, 2, 5, 16, 33))
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4)


FLOATS = {"<f2", "<f4", "<f8", "float16", "float32", "float64", "bfloat16"}


def array():
    """An array as numpy may have it, and whether it is a plain matrix of floats."""
    x = matrix()
    dtype = pick("<f4", "<f4", "<f8", "<f2", ">f4", ">f8", "<i4", "<i8", "|u1", "|b1", "<c8", "<U3")
    x = x.astype(dtype) if dtype != "<U3" else x.astype("<f4").astype("<U3")
    how = pick("plain", "plain", "plain", "fortran", "transposed", "strided", "reversed", "vector", "cube", "empty", "scalar")
    match how:
        case "fortran":
            x = np.asfortranarray(x)
        case "transposed":
            x = x.T
        case "strided":
            x = np.repeat(x, 2, 0)[::2]
        case "reversed":
            x = x[::-1, ::-1]
        case "vector":
            x = x[0]
        case "cube":
            x = x[None]
        case "empty":
            x = x[:0]
        case "scalar":
            x = x[0, 0]
    plain = dtype in FLOATS and x.ndim == 2 and x.size > 0 and (x.flags.c_contiguous or not x.flags.f_contiguous)
    return x, dict(dtype=dtype, how=how), plain


def npy(path):
    x, o, plain = array()
    o["version"] = pick((1, 0), (2, 0), (3, 0))
    with open(path, "wb") as f:
        np.lib.format.write_array(f, np.asarray(x), version=o["version"])
    end = pick(*["whole"] * 5, "cut", "trailer")
    b = path.read_bytes()
    if end == "cut":
        path.write_bytes(b[: int(rng.integers(0, len(b)))])
    elif end == "trailer":
        path.write_bytes(b + b"more")
    o["end"] = end
    return "", o, plain and end == "whole", lambda: np.load(path), "trailer" == end


def npz(path):
    x, o, plain = array()
    members = {"x": x} if rng.integers(2) else {"ids": np.arange(9), "x": x, "y": x}
    o["packed"] = bool(rng.integers(2))
    (np.savez_compressed if o["packed"] else np.savez)(path, **members)
    o["end"] = pick(*["whole"] * 5, "cut", "byte")
    b = bytearray(path.read_bytes())
    if o["end"] == "cut":
        b = b[: int(rng.integers(0, len(b)))]
    elif o["end"] == "byte":
        z = zipfile.ZipFile(path).getinfo("x.npy")
        at = z.header_offset + 30 + len("x.npy") + int(rng.integers(128, max(129, z.compress_size)))
        if at < len(b):
            b[at] ^= int(rng.integers(1, 256))
    path.write_bytes(b)
    return "x", o, plain and o["end"] == "whole", lambda: np.load(path)["x"], False


def saved_tensors(path):
    x = matrix()
    dtype = pick("float32", "float32", "float16", "float64", "bfloat16", "int32", "uint8")
    t = torch.tensor(x).to(getattr(torch, dtype))
    shape = pick("plain", "plain", "vector", "cube", "empty")
    t = {"plain": t, "vector": t[0], "cube": t[None], "empty": t[:0]}[shape].contiguous()
    tensors = {"x": t} if rng.integers(2) else {"a": torch.zeros(3, 4, 5), "x": t, "z": torch.arange(7)}
    safetensors.torch.save_file(tensors, str(path), metadata=pick(None, {"format": "pt"}, {"note": "\u732b"}))
    end = pick(*["whole"] * 5, "cut")
    if end == "cut":
        b = path.read_bytes()
        path.write_bytes(b[: int(rng.integers(0, len(b)))])
    return "x", dict(dtype=dtype, shape=shape, end=end), dtype in FLOATS and shape == "plain" and end == "whole", lambda: safetensors.torch.load_file(str(path))["x"].float().numpy(), False


def torch_file(path):
    x = torch.tensor(matrix())
    dtype = pick("float32", "float32", "float16", "float64", "bfloat16", "int64", "complex64")
    x = x.to(getattr(torch, dtype))
    how = pick("plain", "plain", "transposed", "rows", "columns", "second half", "expanded", "parameter", "grad", "negative", "conjugate", "vector", "unsqueezed", "flipped", "nested", "as strided")
    match how:
        case "transposed":
            x = x.t()
        case "rows":
            x = x[::2]
        case "columns":
            x = x[:, x.shape[1] // 2:]
        case "second half":
            x = x[x.shape[0] // 2:]
        case "expanded":
            x = x[:1].expand(5, x.shape[1])
        case "parameter":
            x = torch.nn.Parameter(x, requires_grad=x.is_floating_point() or x.is_complex())
        case "grad":
            x = x.clone().requires_grad_() if x.is_floating_point() else x
        case "negative":
            x = torch._neg_view(x)
        case "conjugate":
            x = x.conj()
        case "vector":
            x = x[0]
        case "unsqueezed":
            x = x[None][0]
        case "as strided":
            x = x.as_strided((max(1, x.shape[0] - 1), x.shape[1]), (x.shape[1], 1), 0)
    legacy = bool(rng.integers(3) == 0)
    held = pick("tensor", "dict", "dict")
    thing = {"x": x, "step": 7, "names": ["a", "b"], "y": torch.zeros(2, 3)} if held == "dict" else x
    if how == "nested":
        thing = {"model": {"x": x}} if held == "dict" else [x]
    torch.save(thing, path, _use_new_zipfile_serialization=not legacy)
    name = "" if held == "tensor" else "model.x" if how == "nested" else "x"
    plain = dtype in FLOATS and how in ("plain", "second half", "parameter", "grad", "unsqueezed", "as strided") and x.shape[0] > 1
    o = dict(dtype=dtype, how=how, legacy=legacy, held=held)

    def read():
        t = torch.load(path, weights_only=True)
        for k in name.split("."):
            t = t[k] if k else t[0] if isinstance(t, list) else t
        t = t.detach().resolve_neg().resolve_conj()
        return (torch.view_as_real(t) if t.is_complex() else t.float()).numpy()
    return name, o, plain, read, False


makers = {".npy": npy, ".npz": npz, ".safetensors": saved_tensors, ".pt": torch_file}
cases = []
for i in range(count):
    ext = pick(*makers)
    name = f"{i:05d}{ext}"
    path = folder / name
    tensor, o, plain, read, lenient = makers[ext](path)
    case = dict(name=name, tensor=tensor, settings=json.dumps(o), plain=plain, error="", matrix=False, whole=o.get("end", "whole") == "whole", strict=lenient)
    try:
        x = np.asarray(read())
        if x.dtype.kind in "fiub" and x.ndim == 2 and x.size:
            np.save(folder / (name + ".rows.npy"), np.ascontiguousarray(x, np.float32))
            case["matrix"] = True
    except Exception as e:
        case["error"] = f"{type(e).__name__}: {e}"[:200]
    cases.append(case)
(folder / "cases.json").write_text(json.dumps(cases))
