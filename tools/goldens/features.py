"""Writes data/features/testdata: one matrix of 3 x 4 in every form that numpy and the
safetensors library store it in, and forms that are refused.

Run from the repository root: python tools/goldens/features.py
It was run with numpy 2.4.6 and safetensors 0.8.0.
"""
import numpy as np
from safetensors.numpy import save_file

folder = "data/features/testdata/"
x = np.array([[0, -1.5, 2, 0.25], [1, 6e-8, -3, 100], [65504, 0.5, -0.125, 7]])
for name in "f2", "f4", "f8":
    np.save(folder + name + ".npy", x.astype("<" + name))
with open(folder + "v2.npy", "wb") as f:
    np.lib.format.write_array(f, x.astype("<f4"), version=(2, 0))
with open(folder + "v3.npy", "wb") as f:
    np.lib.format.write_array(f, x.astype("<f4"), version=(3, 0))
np.save(folder + "fortran.npy", np.asfortranarray(x.astype("<f4")))
np.save(folder + "big.npy", x.astype(">f4"))
np.save(folder + "int.npy", x.astype("<i8"))
np.save(folder + "row.npy", x[0].astype("<f4"))
np.save(folder + "record.npy", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
save_file({"image": x.astype("<f4"), "text": x.astype("<f2")}, folder + "two.safetensors")
save_file({"only": x.astype("<f8")}, folder + "one.safetensors")
np.save(folder + "object.npy", np.array([x[0], None], dtype=object), allow_pickle=True)
arrays = dict(f2=x.astype("<f2"), f4=x.astype("<f4"), f8=x.astype("<f8"), row=x[0].astype("<f4"), ints=x.astype("<i8"), objects=np.array([None], dtype=object))
np.savez(folder + "all.npz", allow_pickle=True, **arrays)
np.savez_compressed(folder + "packed.npz", f2=arrays["f2"], f4=arrays["f4"], ints=arrays["ints"])
