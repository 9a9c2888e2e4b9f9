package vector

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// The passes of attention over a matrix of scores, rows of stride floats of which the
// first n count. Each has a plain twin in attention_plain.go.

const float32Size = 4 // bytes

// SoftmaxRows replaces each row of s by its softmax, dropped out unless bits is nil
// (as Dropout does, words to a row), and sets lse to log sum exp of the rows.
func SoftmaxRows(s []float32, stride, n int, bits []int32, words int, scale float32, lse []float32) {
	rows := len(lse)
	CheckMatrix("scores", rows, n, len(s), stride)
	checkBits(bits, words, rows, n)
	if !cpu.HasVectors {
		plainSoftmaxRows(s, stride, n, bits, words, scale, lse)
		return
	}
	const block = 64 // rows whose statistics are held
	var stats [2 * block]float32
	var mask *int32
	if bits == nil {
		scale = 1
	}
	for i := 0; i < rows; i += block {
		m := min(block, rows-i)
		if bits != nil {
			mask = &bits[i*words]
		}
		softmaxRowsVec(&s[i*stride], stride*float32Size, m, n, mask, words*float32Size, scale, &stats[0])
		for j := range m {
			lse[i+j] = stats[2*j] + float32(math.Log(float64(stats[2*j+1])))
		}
	}
}

// ExpRows sets each row of p to exp(p - lse) and, unless bits is nil, the same row of
// dropped to its dropout.
func ExpRows(p, dropped []float32, stride, n int, lse []float32, bits []int32, words int, scale float32) {
	rows := len(lse)
	CheckMatrix("scores", rows, n, len(p), stride)
	CheckMatrix("dropped scores", rows, n, len(dropped), stride)
	checkBits(bits, words, rows, n)
	if !cpu.HasVectors {
		plainExpRows(p, dropped, stride, n, lse, bits, words, scale)
		return
	}
	var mask *int32
	if bits != nil {
		mask = &bits[0]
	}
	expRowsVec(&p[0], &dropped[0], stride*float32Size, rows, n, &lse[0], mask, words*float32Size, scale)
}

// SoftmaxGradRows sets ds to the gradient at the scores, p*(dp - sum p*dp), for rows of
// probabilities p, where ds holds the gradient at the probabilities after dropout and
// dropped those (p itself without dropout).
func SoftmaxGradRows(ds, p, dropped []float32, stride, rows, n int) {
	CheckMatrix("score gradients", rows, n, len(ds), stride)
	CheckMatrix("scores", rows, n, len(p), stride)
	CheckMatrix("dropped scores", rows, n, len(dropped), stride)
	if !cpu.HasVectors {
		plainSoftmaxGradRows(ds, p, dropped, stride, rows, n)
		return
	}
	softmaxGradRowsVec(&ds[0], &p[0], &dropped[0], stride*float32Size, rows, n)
}

// DotRows sets every step-th element of dst to scale times the product of a row of x
// with y, for rows of x.
func DotRows(dst []float32, step int, x []float32, stride, rows int, y []float32, scale float32) {
	n := len(y)
	CheckMatrix("x", rows, n, len(x), stride)
	CheckMatrix("dst", rows, 1, len(dst), step)
	if !cpu.HasVectors {
		plainDotRows(dst, step, x, stride, rows, y, scale)
		return
	}
	dotRowsVec(&dst[0], step*float32Size, &x[0], stride*float32Size, rows, n, &y[0], scale)
}

// checkBits panics if rows of words do not hold n bits each.
func checkBits(bits []int32, words, rows, n int) {
	if bits != nil && (32*words < n || len(bits) < rows*words) {
		panic("kernel: attention: too few words of dropout bits")
	}
}
