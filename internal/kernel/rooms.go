package kernel

import (
	"sync"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// output is where a candidate writes.
type output struct {
	c, activated []float32
	room         [2]*[]float32 // that it is made of, nil where it is the product's own
}

// rooms lends memory for results while products are measured. The garbage collector takes it back
// when no product is measured any more.
type rooms struct{ pool sync.Pool }

// take returns n values that hold anything.
func (r *rooms) take(n int) *[]float32 {
	x, _ := r.pool.Get().(*[]float32)
	if x == nil {
		x = new([]float32)
	}
	if cap(*x) < n {
		*x = make([]float32, n)
	}
	*x = (*x)[:n]
	return x
}

func (r *rooms) give(list ...output) {
	for _, o := range list {
		for _, x := range o.room {
			if x != nil {
				r.pool.Put(x)
			}
		}
	}
}

// resultSize returns the values of the result of p, from its first to its last.
func resultSize(p *gemm.Product) int { return (p.M-1)*p.LDC + p.N }

// outputs returns where the default and the candidates write. The default has the result of p itself where that is
// not read. Where it is, both have copies.
func (t *tuner) outputs(p *gemm.Product) (own, other output) {
	other = t.output(p)
	if p.Beta == 0 {
		return output{c: p.C, activated: p.Activated}, other
	}
	return t.output(p), other
}

// output returns room for a result of p, with the value of C where that is added to.
func (t *tuner) output(p *gemm.Product) (o output) {
	n := resultSize(p)
	o.room[0] = t.room.take(n)
	o.c = *o.room[0]
	o.refresh(p)
	if p.Activated != nil {
		o.room[1] = t.room.take(n)
		o.activated = *o.room[1]
	}
	return o
}

// refresh sets the result to that of p before it is computed, where it is added to.
func (o output) refresh(p *gemm.Product) {
	if p.Beta != 0 {
		copy(o.c, p.C)
	}
}
