package model

import (
	"strings"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// prepareOnce gives the weights of the linear layers of a computation, where the parameters are those of a source and
// do not change, packed, as products read them. Each weight is prepared once, whatever the batches and computations.
func (b *net) prepareOnce(e exec.Engine, m *exec.Machine) {
	if b.params.params.source == nil || onDevice(e) != nil {
		return
	}
	b.params.each(func(q *Param, n *gorgonia.Node, _ []float32) {
		if len(q.Shape) != 2 || !b.multiplied(n) {
			return
		}
		if q.packs == nil {
			q.packs = new(exec.Packs)
		}
		m.SetPacks(n, q.packs)
	})
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
