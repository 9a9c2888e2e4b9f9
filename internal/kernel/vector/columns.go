package vector

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// The passes of a batch norm over rows of n channels.

// columnValues are the values of the rows that sums go over at a time, which stay in the level-1 cache while they do.
const columnValues = 4096

// Columns is what a batch norm does with each channel: y = (x - Mean)*Scale + Shift, of which ReLU takes the positive
// part.
type Columns struct {
	Mean, Scale, Shift []float32 // (n)
	ReLU               bool
}

// SumsRoom is the room that float64 sums of n columns need: whole vectors.
func SumsRoom(n int) int { return (n + 3) &^ 3 }

// Doubles returns the memory of x, which lies at a multiple of 8 bytes, as half as many float64.
func Doubles(x []float32) []float64 {
	if len(x) < 2 {
		return nil
	}
	return unsafe.Slice((*float64)(unsafe.Pointer(&x[0])), len(x)/2)
}

// ColumnMoments adds the column sums of x - from and of its square to sum and square; x has rows as long as from. The
// differences are rounded to float32. sum and square have SumsRoom values.
func ColumnMoments(sum, square []float64, x, from []float32) {
	n, rows := len(from), rowsOf(x, len(from))
	checkSums(sum, square, n)
	switch {
	case rows == 0:
	case !cpu.HasVectors:
		plainColumnMoments(sum, square, x, from)
	default:
		for step := max(1, columnValues/n); rows > 0; rows -= step {
			columnMomentsVec(&sum[0], &square[0], &x[0], &from[0], min(rows, step), n)
			x = x[min(rows, step)*n:]
		}
	}
}

// Sums adds the column sums of dy and of dy*(x - Mean) to sum and product. With ReLU dy counts where y is positive
// alone. The differences are rounded to float32.
func (c *Columns) Sums(sum, product []float64, x, dy []float32) {
	n, rows := len(c.Mean), rowsOf(x, len(c.Mean))
	checkSums(sum, product, n)
	dy = dy[:len(x)]
	switch {
	case rows == 0:
	case !cpu.HasVectors:
		c.plainSums(sum, product, x, dy)
	default:
		for step := max(1, columnValues/n); rows > 0; rows -= step {
			m := min(rows, step)
			if c.ReLU {
				columnDotsReLUVec(&sum[0], &product[0], &x[0], &c.Mean[0], &dy[0], at(c.Scale, n), at(c.Shift, n), m, n)
			} else {
				columnDotsVec(&sum[0], &product[0], &x[0], &c.Mean[0], &dy[0], m, n)
			}
			x, dy = x[m*n:], dy[m*n:]
		}
	}
}

// Apply sets y for rows of x, with add, unless it is nil, added before the positive part is taken. y may be the same
// slice as x or add.
func (c *Columns) Apply(y, x, add []float32) {
	n, rows := len(c.Mean), rowsOf(x, len(c.Mean))
	floor := float32(math.Inf(-1))
	if c.ReLU {
		floor = 0
	}
	out := at(y, len(x))
	switch {
	case rows == 0:
	case !cpu.HasVectors:
		c.plainApply(y, x, add)
	case add != nil:
		normaliseColumnsAddVec(out, &x[0], at(add, len(x)), &c.Mean[0], at(c.Scale, n), at(c.Shift, n), rows, n, floor)
	default:
		normaliseColumnsVec(out, &x[0], &c.Mean[0], at(c.Scale, n), at(c.Shift, n), rows, n, floor)
	}
}

// Grad sets dx = dy*Scale + (x - Mean)*b + a for rows of x, with ReLU of dy where y is positive alone. dx may be the
// same slice as dy.
func (c *Columns) Grad(dx, x, dy, a, b []float32) {
	n, rows := len(c.Mean), rowsOf(x, len(c.Mean))
	out, g := at(dx, len(x)), at(dy, len(x))
	switch {
	case rows == 0:
	case !cpu.HasVectors:
		c.plainGrad(dx, x, dy, a, b)
	case c.ReLU:
		columnGradReLUVec(out, &x[0], g, &c.Mean[0], at(c.Scale, n), at(c.Shift, n), at(a, n), at(b, n), rows, n)
	default:
		columnGradVec(out, &x[0], g, &c.Mean[0], at(c.Scale, n), at(a, n), at(b, n), rows, n)
	}
}

// ReLU sets dst = max(x, 0); NaN stays NaN.
func ReLU(dst, x []float32) {
	if !cpu.HasVectors {
		plainReLU(dst, x)
		return
	}
	n := len(dst)
	reluVec(at(dst, n), at(x, n), n)
}

// Clip sets dst = min(max(x, 0), limit); NaN stays NaN.
func Clip(dst, x []float32, limit float32) {
	if !cpu.HasVectors {
		plainClip(dst, x, limit)
		return
	}
	n := len(dst)
	clipVec(at(dst, n), at(x, n), n, limit)
}

// ReLUGrad sets dx = dy where y is greater than 0, and 0 elsewhere.
func ReLUGrad(dx, y, dy []float32) {
	if !cpu.HasVectors {
		plainReLUGrad(dx, y, dy)
		return
	}
	n := len(dx)
	reluGradVec(at(dx, n), at(y, n), at(dy, n), n)
}

// rowsOf returns how many rows of n values x has.
func rowsOf(x []float32, n int) int {
	checkRows(x, n)
	if n == 0 {
		return 0
	}
	return len(x) / n
}

// checkSums panics unless sums of n columns have room.
func checkSums(a, b []float64, n int) {
	if min(len(a), len(b)) < SumsRoom(n) {
		panic("kernel: vector: too little room for sums of columns")
	}
}
