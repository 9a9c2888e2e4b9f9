package vector

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// CompareExchange is a comparator of a sorting network over columns: where b > a, or where they are
// equal and ib < ia, it swaps a with b and ia with ib. So the larger value comes first, equal ones in
// the order of their places, and a NaN stays where it is. No two slices overlap; the length is that of a.
func CompareExchange(a, b []float32, ia, ib []int32) {
	n := len(a)
	if len(b) < n || len(ia) < n || len(ib) < n {
		panic("kernel: vector: a slice is shorter than the first")
	}
	if !cpu.HasVectors {
		plainCompareExchange(a, b, ia, ib)
		return
	}
	exchangeVec(unsafe.SliceData(a), unsafe.SliceData(b), unsafe.SliceData(ia), unsafe.SliceData(ib), n)
}

func plainCompareExchange(a, b []float32, ia, ib []int32) {
	for i, x := range a {
		if y := b[i]; y > x || y == x && ib[i] < ia[i] {
			a[i], b[i], ia[i], ib[i] = y, x, ib[i], ia[i]
		}
	}
}

// MaxColumns sets top to x and at to place where x is larger than top or NaN. No two slices overlap; the length is that
// of top.
func MaxColumns(top []float32, at []int32, x []float32, place int32) {
	n := len(top)
	if len(at) < n || len(x) < n {
		panic("kernel: vector: a slice is shorter than the first")
	}
	if !cpu.HasVectors {
		plainMaxColumns(top, at, x, place)
		return
	}
	maxColumnsVec(unsafe.SliceData(top), unsafe.SliceData(at), unsafe.SliceData(x), n, place)
}

func plainMaxColumns(top []float32, at []int32, x []float32, place int32) {
	for i := range top {
		if v := x[i]; v > top[i] || v != v {
			top[i], at[i] = v, place
		}
	}
}
