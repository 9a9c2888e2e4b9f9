package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Size returns the bytes of an element, 0 for an unknown type.
func (d DType) Size() int { return int(d.size()) }

// Span returns where the data of the tensor name lies in the file: the first byte and
// the number of bytes. For readers that map the file.
func (f *File) Span(name string) (offset, length int64, ok bool) {
	i, ok := f.Lookup(name)
	return f.start + i.begin, i.Bytes(), ok
}

// Floats returns the conversion of len(dst) consecutive elements of a type of floats,
// little endian, to float32. Numbers that float32 cannot hold are rounded, to an
// infinity where they are too large.
func Floats(d DType) (func(dst []float32, b []byte), error) {
	le := binary.LittleEndian
	switch d {
	case F64:
		return func(dst []float32, b []byte) {
			for i := range dst {
				dst[i] = float32(math.Float64frombits(le.Uint64(b[8*i:])))
			}
		}, nil
	case F32:
		return func(dst []float32, b []byte) {
			if inOrder && len(dst) > 0 {
				copy(memory(dst), b[:4*len(dst)])
				return
			}
			for i := range dst {
				dst[i] = math.Float32frombits(le.Uint32(b[4*i:]))
			}
		}, nil
	case F16:
		return func(dst []float32, b []byte) {
			for i := range dst {
				dst[i] = halfToFloat(le.Uint16(b[2*i:]))
			}
		}, nil
	case BF16:
		return func(dst []float32, b []byte) {
			for i := range dst {
				dst[i] = bfloatToFloat(le.Uint16(b[2*i:]))
			}
		}, nil
	}
	return nil, fmt.Errorf("safetensors: %s is not a type of floats that can be read: use F16, BF16, F32 or F64", d)
}
