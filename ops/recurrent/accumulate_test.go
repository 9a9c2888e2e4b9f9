package recurrent

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestAccumulate: where both directions share tokens and weights their gradients are sums, which the
// ops add up in place.
func TestAccumulate(t *testing.T) {
	p := problem{r: 4, l: 5, in: 3, h: 6, lengths: []int32{5, 0, 2, 4}}.fill(rand.New(rand.NewPCG(18, 1)))
	back := p
	back.reverse = true
	want, _ := optest.Gradients(t, p.build, p.wrt(), p.inputs...)
	reverse, _ := optest.Gradients(t, back.build, p.wrt(), p.inputs...)
	got, _ := optest.Gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node { return arith.Add(p.build(ns), back.build(ns)) }, p.wrt(), p.inputs...)
	for i, w := range want {
		for j := range w {
			w[j] += reverse[i][j]
		}
		optest.Near(t, "gradient of "+p.inputs[i].Name, got[i], w, 1e-5)
	}
}
