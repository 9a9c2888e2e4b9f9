package vector

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// argMaxBlock is how many values ArgMax looks at before it notes where the largest is:
// few enough to be in the first-level cache when they are searched for it.
const argMaxBlock = 4096

// ArgMax returns the first index of the largest value of x. A NaN is never the largest;
// if all are NaN, it returns 0. An empty x is a panic.
func ArgMax(x []float32) int {
	if len(x) == 0 {
		panic("kernel: vector: the largest of no values")
	}
	if !cpu.HasVectors {
		return plainArgMax(x)
	}
	best, from := float32(math.Inf(-1)), -1
	for i := 0; i < len(x); i += argMaxBlock {
		block := x[i:min(i+argMaxBlock, len(x))]
		if top := topVec(unsafe.SliceData(block), len(block)); top > best {
			best, from = top, i
		}
	}
	if from < 0 { // -Inf and NaN only
		return plainArgMax(x)
	}
	return from + findVec(&x[from], len(x)-from, best)
}

func plainArgMax(x []float32) int {
	best, found := 0, false
	for i, v := range x {
		if v > x[best] || !found && v == v {
			best, found = i, true
		}
	}
	return best
}
