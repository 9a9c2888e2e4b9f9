package gemm

import (
	"encoding/binary"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// NewInt8 returns the product of quantised weights.
func NewInt8() *Int8 {
	switch {
	case cpu.HasVNNI:
		return (&Int8{level: "avx512_vnni", lanes: 16, word: 4, terms: 4, offset: 128, tiles: tilesVNNI,
			quantize: quantizeVNNI}).ready()
	case cpu.HasAVX2FMA:
		return (&Int8{level: cpu.AVX2, lanes: 8, word: 4, terms: 2, tiles: tilesShorts, quantize: quantizeShorts}).ready()
	}
	return PlainInt8()
}

// quantizeVNNI rounds a row to bytes, raised by 128.
func quantizeVNNI(dst []byte, row []float32) (scale float32) {
	var largest uint32
	if len(row) < 16 {
		largest = plainLargest(row)
	} else {
		largest = gemmLargestAVX512(&row[0], len(row))
	}
	factor, scale := codeScale(largest)
	gemmCodesAVX512(&dst[0], &row[0], len(row), factor)
	for k := len(row); k%4 != 0; k++ {
		dst[k] = 0
	}
	return scale
}

// quantizeShorts rounds a row to 16 bits.
func quantizeShorts(dst []byte, row []float32) (scale float32) {
	const lanes = 16
	var largest uint32
	if len(row) < lanes {
		largest = plainLargest(row)
	} else {
		largest = gemmLargestAVX2(&row[0], len(row))
	}
	factor, scale := codeScale(largest)
	whole := len(row) / lanes * lanes
	if whole > 0 {
		gemmCodesAVX2((*int16)(unsafe.Pointer(&dst[0])), &row[0], whole, factor)
	}
	for k := whole; k < len(row); k++ {
		binary.LittleEndian.PutUint16(dst[2*k:], uint16(plainCode(row[k], factor)))
	}
	if len(row)%2 != 0 {
		binary.LittleEndian.PutUint16(dst[2*len(row):], 0)
	}
	return scale
}
