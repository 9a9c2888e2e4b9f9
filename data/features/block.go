package features

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"unsafe"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// ReadRows reads rows from first on into dst (n, D), faster than one by one. Unlike Row it
// leaves numbers that are not finite to the caller.
func (m *Matrix) ReadRows(first int, dst []float32) (err error) {
	n := len(dst) / m.width
	if first < 0 || n*m.width != len(dst) || first > m.rows-n {
		return fmt.Errorf("features: %s: there are no rows %d to %d of %d numbers among %d of %d", m.path, first,
			first+n, len(dst), m.rows, m.width)
	}
	if m.mapped == nil {
		for i := range n {
			if err := m.read(first+i, dst[i*m.width:(i+1)*m.width]); err != nil {
				return err
			}
		}
		return nil
	}
	defer files.RecoverFault(&err, m.gone, debug.SetPanicOnFault(true))
	size := m.dtype.Size()
	b := m.mapped[m.start+int64(first)*int64(m.width*size):][:len(dst)*size]
	// The file's byte order is the processor's, and values lie at multiples of their size, nearly
	// everywhere.
	if m.dtype == safetensors.BF16 && binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && len(b) > 0 &&
		uintptr(unsafe.Pointer(&b[0]))%uintptr(size) == 0 {
		vector.FromBF16(dst, unsafe.Slice((*uint16)(unsafe.Pointer(&b[0])), len(dst)))
		return nil
	}
	m.convert(dst, b)
	return nil
}
