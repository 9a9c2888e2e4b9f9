// Package features is the data kind "pairs": features that frozen encoders made of
// images and texts, stored in two files whose rows are in step. Nothing is decoded and
// no text is tokenized; rows are read from the files as they are needed.
//
//	pairs, err := features.Open(features.PairsConfig{Image: "image.npy", Text: "text.npy", ValSamples: 1000}, seed)
//	stream := pairs.Stream()      // batch.ImageFeatures (D), batch.TextFeatures (E), batch.IDs
//	set, err := pairs.Set("val", 0)
//
// A file is a .npy array (f2, f4 or f8, little endian, in C order) or a tensor of a
// .safetensors file (F16, BF16, F32 or F64), with two axes. Numbers become float32 when a
// row is read. Files are mapped into memory where the system can do that: the system
// keeps of them what fits.
//
// Shape letters: N rows of a file, D and E widths of its rows.
package features
