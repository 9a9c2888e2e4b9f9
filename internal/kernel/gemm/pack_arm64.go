package gemm

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// PackRows packs kb rows of x from value at on, n columns in blocks of width, into
// rows of stride words. Block q begins at dst[q*block]. Columns that are not there are 0.
func (t *Tiled) PackRows(dst []float32, stride, block int, x Matrix, at, kb, n, width int) {
	const panel = 2 * lanesNEON
	for p := range kb {
		row := x.F32[at+p*x.LD:][:n]
		for to := dst[p*stride:]; len(row) > 0; to = to[block:] {
			if width == panel && len(row) >= panel {
				*(*[panel]float32)(to) = [panel]float32(row)
				row = row[panel:]
			} else {
				words := min(width, len(row))
				clear(to[copy(to[:words], row):stride])
				row = row[words:]
			}
			if len(row) == 0 {
				break
			}
		}
	}
}

// gemmConvert rounds n values of each of the rows to bfloat16; strides are in bytes.
func gemmConvert(dst *uint16, dstStride int, src *float32, srcStride, n, rows int) {
	for r := range rows {
		to, from := unsafe.Add(unsafe.Pointer(dst), r*dstStride), unsafe.Add(unsafe.Pointer(src), r*srcStride)
		vector.ToBF16(unsafe.Slice((*uint16)(to), n), unsafe.Slice((*float32)(from), n))
	}
}
