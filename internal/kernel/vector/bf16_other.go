//go:build !amd64

package vector

func toHalves(dst []uint16, src []float32) { plainToBF16(dst, src) }

func fromHalves(dst []float32, src []uint16) { plainFromBF16(dst, src) }
