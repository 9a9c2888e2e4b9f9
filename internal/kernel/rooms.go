package kernel

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// mostRoom is the number of values of a result above which a product is not measured, since the
// candidates need a result of their own.
const mostRoom = 8 << 20

// room is memory for the results of candidates: of the largest size at once, of which a system gives what is
// written to, as growing would leave what was too small to the garbage collector.
type room []float32

// take returns n values that hold anything.
func (r *room) take(n int) []float32 {
	if *r == nil {
		*r = make(room, mostRoom)
	}
	return (*r)[:n]
}

// resultSize returns the values of the result of p, from its first to its last.
func resultSize(p *gemm.Product) int { return (p.M-1)*p.LDC + p.N }

// output is where a trial writes its result. What follows the result goes to where it belongs, and is overwritten
// later.
type output []float32

// outputs returns where the default and the candidates write. The default has the result of p itself where that is
// not read. Where it is, both have copies.
func (t *tuner) outputs(p *gemm.Product) (own, other output) {
	n := resultSize(p)
	own, other = p.C, t.rooms[0].take(n)
	if p.Beta != 0 {
		own = t.rooms[1].take(n)
		output(own).refresh(p)
	}
	return own, other
}

// refresh sets the result to that of p before it is computed, where it is added to.
func (o output) refresh(p *gemm.Product) {
	if p.Beta != 0 {
		copy(o, p.C)
	}
}
