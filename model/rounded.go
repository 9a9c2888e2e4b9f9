package model

import (
	"strings"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// roundedWeights keeps bfloat16 copies of the weights of a computation, so that a step rounds each
// weight once however many products read it. A product of a library saves a pass over
// memory by them; one that rounds its operands while it packs them would gain 1 to 3 %
// for two bytes a parameter and copy, and does without.
type roundedWeights struct {
	engine exec.Engine
	copies []weightCopy
	body   func(worker, lo, hi int)
}

// weightCopy is a piece of a weight and of its copy.
type weightCopy struct {
	from []float32
	to   []uint16
}

// copyLen is the number of values in a piece: some microseconds of work.
const copyLen = 1 << 15

// keepRounded says whether an engine wants rounded weights; tests ask for them anywhere.
var keepRounded = exec.Engine.KeepsRounded

// bindRounded gives the weights of b copies in bfloat16: the parameters with two axes,
// since others are in no product.
func bindRounded(e exec.Engine, b *net, m *exec.Machine) (*roundedWeights, error) {
	r := &roundedWeights{engine: e}
	r.body = func(_, lo, hi int) {
		for _, c := range r.copies[lo:hi] {
			vector.ToBF16(c.to, c.from)
		}
	}
	var err error
	for _, w := range []*binding{b.params, b.momentum} {
		w.each(func(q *Param, n *gorgonia.Node, mem []float32) {
			if err != nil || len(q.Shape) != 2 {
				return
			}
			half := make([]uint16, len(mem))
			for at := 0; at < len(mem); at += copyLen {
				end := min(at+copyLen, len(mem))
				r.copies = append(r.copies, weightCopy{mem[at:end], half[at:end]})
			}
			err = m.SetShadow(n, half)
		})
	}
	return r, err
}

// update rounds all weights.
func (r *roundedWeights) update() { r.engine.For(len(r.copies), 1, r.body) }

// bytes returns the memory of the copies.
func (r *roundedWeights) bytes() (n int64) {
	for _, c := range r.copies {
		n += 2 * int64(len(c.to))
	}
	return n
}

// prepareOnce gives the weights of the linear layers of a computation, where the parameters are those of a source and
// do not change, in the form in which products read them: packed for the built-in products, rounded to bfloat16 for a
// library that multiplies in it. Each weight is prepared once, whatever the batches and computations.
func (b *net) prepareOnce(e exec.Engine, m *exec.Machine) (err error) {
	if b.params.params.source == nil || onDevice(e) != nil {
		return nil
	}
	b.params.each(func(q *Param, n *gorgonia.Node, mem []float32) {
		switch {
		case err != nil || len(q.Shape) != 2 || !b.multiplied(n):
		case e.KeepsRounded():
			if q.half == nil {
				q.half = make([]uint16, len(mem))
				e.For(len(mem), copyLen, func(_, lo, hi int) { vector.ToBF16(q.half[lo:hi], mem[lo:hi]) })
			}
			err = m.SetShadow(n, q.half)
		default:
			if q.packs == nil {
				q.packs = new(exec.Packs)
			}
			m.SetPacks(n, q.packs)
		}
	})
	return err
}

// multiplied says whether a linear layer reads a node.
func (b *net) multiplied(n *gorgonia.Node) bool {
	for it := b.g.To(n.ID()); it.Next(); {
		if o := op.Of(it.Node().(*gorgonia.Node)); o != nil && strings.HasPrefix(o.Kind, "linear") {
			return true
		}
	}
	return false
}
