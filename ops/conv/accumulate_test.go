package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestGradientsAccumulate: where images or filters pass two convolutions, the gradients of the second are added to those
// of the first without an addition of their own.
func TestGradientsAccumulate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 78))
	for _, g := range []Geometry{{6, 5, 3, 1, 1}, {6, 5, 1, 1, 0}} {
		in := []optest.Input{optest.F32s(r, "x", 60, 20), optest.F32s(r, "w", 7, 20, g.Kernel, g.Kernel), optest.F32s(r, "other", 7, 20, g.Kernel, g.Kernel), optest.F32s(r, "y", 60, 20)}
		for name, build := range map[string]func(ns gorgonia.Nodes) *gorgonia.Node{
			"images": func(ns gorgonia.Nodes) *gorgonia.Node {
				x := arith.Add(ns[0], ns[3]) // not an input, whose gradients are outputs
				return arith.Add(Conv(x, ns[1], g), Conv(x, ns[2], g))
			},
			"filters": func(ns gorgonia.Nodes) *gorgonia.Node {
				w := arith.Add(ns[1], ns[2])
				return arith.Add(Conv(ns[0], w, g), Conv(ns[3], w, g))
			},
		} {
			optest.CheckGrad(t, build, []int{0, 1, 2, 3}, 1e-2, 2e-3, in...)
			m, _ := optest.Case{Inputs: in, WRT: []int{0, 1}, Build: build}.Compile(t, optest.Engine)
			for _, k := range m.Profile().Kinds {
				if k.Kind == "add gradients" && k.Nodes > 0 {
					t.Errorf("%s, %v: %d additions of gradients", name, g, k.Nodes)
				}
			}
		}
	}
}

// TestPrecision: an engine for bf16 convolves in float32, with the bits of one for it.
func TestPrecision(t *testing.T) {
	var results [2][]float32
	for i, precision := range []string{"fp32", "bf16"} {
		e := check.Get(kernel.New(kernel.Options{Threads: 2, Precision: precision}))(t)
		defer e.Close()
		for _, c := range cases() {
			m, outputs := c.Compile(t, e)
			check.OK(t, m.RunAll())
			for _, n := range outputs {
				a := check.Get(m.Value(n))(t)
				results[i] = append(results[i], a.F32...)
			}
		}
	}
	if !slices.Equal(results[0], results[1]) {
		t.Error("bf16 has other bits than fp32")
	}
}
