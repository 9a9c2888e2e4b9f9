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
		return (&Int8{level: "avx512_vnni", lanes: 16, word: 4, terms: 4, tiles: tilesVNNI,
			quantize: quantizeVNNI}).ready()
	case cpu.HasAVX2FMA:
		return (&Int8{level: cpu.AVX2, lanes: 8, word: 4, terms: 2, tiles: tilesShorts, quantize: quantizeShorts}).ready()
	}
	return PlainInt8()
}

// quantizeVNNI rounds a row to bytes.
func quantizeVNNI(dst []byte, row []float32) rowCodes {
	const lanes = 16
	var q rowCodes
	if len(row) < lanes {
		q = rangeCodes(plainRange(row))
	} else {
		q = rangeCodes(gemmRangeAVX512(&row[0], len(row)))
	}
	gemmCodesAVX512(&dst[0], &row[0], len(row), q.factor, q.zero)
	for k := len(row); k%4 != 0; k++ {
		dst[k] = 0
	}
	return q
}

// quantizeShorts rounds a row to 16 bits, without the zero.
func quantizeShorts(dst []byte, row []float32) rowCodes {
	const lanes = 16
	var q rowCodes
	if len(row) < lanes {
		q = rangeCodes(plainRange(row))
	} else {
		q = rangeCodes(gemmRangeAVX2(&row[0], len(row)))
	}
	whole := len(row) / lanes * lanes
	if whole > 0 {
		gemmCodesAVX2((*int16)(unsafe.Pointer(&dst[0])), &row[0], whole, q.factor, byteLimit-q.zero)
	}
	for k := whole; k < len(row); k++ {
		binary.LittleEndian.PutUint16(dst[2*k:], uint16(q.code(row[k])))
	}
	if len(row)%2 != 0 {
		binary.LittleEndian.PutUint16(dst[2*len(row):], 0)
	}
	return q
}
