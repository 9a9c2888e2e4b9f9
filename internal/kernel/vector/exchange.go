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
	if !cpu.HasAVX2FMA {
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
