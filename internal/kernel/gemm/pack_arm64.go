package gemm

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// PackRows packs kb rows of x from value at on, n columns in blocks of width, into
// rows of stride words. Block q begins at dst[q*block]. Columns that are not there are 0.
func (t *Tiled) PackRows(dst []float32, stride, block int, x Matrix, at, kb, n, width int) {
	if t.BF16 {
		packPairs(asBits(dst), stride, block, x, at, kb, n, width)
		return
	}
	for p := range kb {
		row := x.F32[at+p*x.LD:][:n]
		for q := 0; q*width < n; q++ {
			to, words := dst[q*block+p*stride:], row[q*width:min((q+1)*width, n)]
			if len(words) == panelNEON && stride == panelNEON {
				*(*[panelNEON]float32)(to) = [panelNEON]float32(words)
			} else {
				clear(to[copy(to, words):stride])
			}
		}
	}
}

// panelNEON are the columns of a panel.
const panelNEON = 2 * lanesNEON

// packPairs is PackRows of bfloat16: a word is a pair of it along the rows, whose second half is 0 after the last row.
func packPairs(dst []uint32, stride, block int, x Matrix, at, kb, n, width int) {
	var pair [2][panelNEON]uint16
	for p := 0; p < kb; p += 2 {
		for q := 0; q*width < n; q++ {
			words := min(width, n-q*width)
			for h := range pair {
				from := at + (p+h)*x.LD + q*width
				switch {
				case p+h == kb:
					clear(pair[h][:words])
				case x.BF16 != nil:
					copy(pair[h][:words], x.BF16[from:])
				default:
					vector.ToBF16(pair[h][:words], x.F32[from:from+words])
				}
			}
			to := dst[q*block+p/2*stride:][:stride]
			for i := range words {
				to[i] = uint32(pair[0][i]) | uint32(pair[1][i])<<16
			}
			clear(to[words:])
		}
	}
}

// asBits returns the memory of x as words.
func asBits(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// gemmConvert rounds n values of each of the rows to bfloat16; strides are in bytes.
func gemmConvert(dst *uint16, dstStride int, src *float32, srcStride, n, rows int) {
	for r := range rows {
		to, from := unsafe.Add(unsafe.Pointer(dst), r*dstStride), unsafe.Add(unsafe.Pointer(src), r*srcStride)
		vector.ToBF16(unsafe.Slice((*uint16)(to), n), unsafe.Slice((*float32)(from), n))
	}
}
