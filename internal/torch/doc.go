// Package torch reads which tensors are in a file that torch.save wrote, and where. It reads the zip
// format (PyTorch 1.6 and later) and the legacy format (0.4 to 1.5, and later on request).
//
//	f, err := torch.Open("model.pt")
//	t, ok := f.Lookup("encoder.weight") // type, shape, first byte in the file
//
// A file is an archive of a pickle, which says how objects are made, and of the bytes of storages; in the
// legacy format these follow each other.
// A pickle is a program that may call any function of Python. Here it is run by a machine that knows
// the few instructions and names that tensors, dictionaries and lists of them are written with, calls
// nothing, makes no objects, and refuses everything else. Plain reads other pickles of dictionaries, lists, texts and
// numbers by the same machine.
package torch
