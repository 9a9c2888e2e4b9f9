package vector

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// toHalves is ToBF16 with the instruction set in use.
func toHalves(dst []uint16, src []float32) {
	n := len(dst)
	if whole := n &^ 31; cpu.HasBF16 && whole > 0 {
		toHalvesBF16(&dst[0], &src[0], whole)
		dst, src = dst[whole:], src[whole:]
		n -= whole
	}
	switch {
	case cpu.HasAVX512:
		toHalvesAVX512(unsafe.SliceData(dst), unsafe.SliceData(src), n)
		return
	case cpu.HasAVX2FMA && n >= 16:
		whole := n &^ 15
		toHalvesAVX2(&dst[0], &src[0], whole)
		dst, src = dst[whole:], src[whole:]
	}
	plainToBF16(dst, src)
}

// fromHalves is FromBF16 with the instruction set in use.
func fromHalves(dst []float32, src []uint16) {
	n := len(dst)
	switch {
	case cpu.HasAVX512:
		fromHalvesAVX512(unsafe.SliceData(dst), unsafe.SliceData(src), n)
		return
	case cpu.HasAVX2FMA && n >= 8:
		whole := n &^ 7
		fromHalvesAVX2(&dst[0], &src[0], whole)
		dst, src = dst[whole:], src[whole:]
	}
	plainFromBF16(dst, src)
}
