package safetensors

import (
	"encoding/binary"
	"unsafe"
)

// inOrder says that numbers lie in memory as they do in files, lowest byte first.
var inOrder = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory returns the bytes of v, of which there are to be more than none.
func memory[T float32 | int64 | int32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}
