package model

import (
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
)

// blocks collects the transformer blocks of a step under construction, whose results
// the backward pass computes again where memory is short (compute.recompute).
type blocks struct {
	list []exec.Block
	from int64
	open bool
}

// mark returns a function to call before and after the nodes of each block are added.
func (b *blocks) mark(g *gorgonia.ExprGraph) func() {
	return func() {
		at := exec.NextID(g)
		if b.open {
			b.list = append(b.list, exec.Block{From: b.from, To: at})
		}
		b.from, b.open = at, !b.open
	}
}
