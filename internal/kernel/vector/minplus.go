package vector

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// MinPlus sets dst[j] = min(dst[j], a + row[j]), a row's share in a step of Floyd and
// Warshall's shortest paths: row holds the distances from a middle node, a is the one to
// it. A value is replaced by a smaller one only, so NaN replaces nothing and is not
// replaced. dst and row may be the same slice.
func MinPlus(dst, row []float32, a float32) {
	n := len(dst)
	prow := at(row, n)
	if !cpu.HasVectors {
		plainMinPlus(dst, row, a)
		return
	}
	minPlusVec(at(dst, n), prow, n, a)
}

func plainMinPlus(dst, row []float32, a float32) {
	for j, v := range row[:len(dst)] {
		if d := a + v; d < dst[j] {
			dst[j] = d
		}
	}
}
