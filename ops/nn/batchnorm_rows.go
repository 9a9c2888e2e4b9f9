package nn

import "github.com/geoalign/geoalign/internal/exec"

// countedRows are the rows of x (rows, d) that count: the first so many of every l.
type countedRows struct {
	rows, d, l int
	lengths    *exec.Array // nil: all count
	counts     []int32
	n          int // their sum
}

// count reads the lengths.
func (x *countedRows) count(kind string) error {
	if x.lengths != nil {
		if err := checkLengths(kind, x.lengths.I32, x.l); err != nil {
			return err
		}
		copy(x.counts, x.lengths.I32)
	}
	x.n = 0
	for _, n := range x.counts {
		x.n += int(n)
	}
	return nil
}

// end is the row behind the last of sequence s that counts.
func (x *countedRows) end(s int) int { return s*x.l + int(x.counts[s]) }

// first is the first row that counts; one must.
func (x *countedRows) first() int {
	s := 0
	for x.counts[s] == 0 {
		s++
	}
	return s * x.l
}

// each calls f for the runs of rows in [lo, hi) that count.
func (x *countedRows) each(lo, hi int, f func(lo, hi int)) {
	for s := lo / x.l; s*x.l < hi; s++ {
		if from, to := max(lo, s*x.l), min(hi, x.end(s)); from < to {
			f(from, to)
		}
	}
}

// clear sets the rows in [lo, hi) that do not count to 0.
func (x *countedRows) clear(out []float32, lo, hi int) {
	for s := lo / x.l; s*x.l < hi; s++ {
		if from, to := max(lo, x.end(s)), min(hi, (s+1)*x.l); from < to {
			clear(out[from*x.d : to*x.d])
		}
	}
}
