// Package safetensors reads and writes the safetensors format: eight bytes of
// header length (little endian), a JSON header
//
//	{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//	 "__metadata__": {"key": "value"}}
//
// and the data of all tensors, row-major and little endian, without gaps.
//
// Reading is lazy: Open checks the header against the file size and each tensor
// is read when asked for. Numbers of any common type are converted to float32 or
// int64 on the way. Writing streams: no second copy of the data is made.
package safetensors
