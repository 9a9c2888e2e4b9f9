package contrast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// marginOf builds Margin.
func marginOf(margin float64) func(ns gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node { return Margin(ns[0], ns[1], ns[2], margin) }
}

// TestMargin compares random losses with the definition and gradients with finite differences.
func TestMargin(t *testing.T) {
	r := rand.New(rand.NewPCG(84, 1))
	for i := range 30 {
		n := 1 + r.IntN(20)
		p, q, w := optest.F32s(r, "p", n), optest.F32s(r, "n", n), optest.F32s(r, "w", n)
		sum, all := 0., 0.
		for k := range n {
			w.Floats()[k] = float32(r.IntN(3)) / 2
			v := float64(w.Floats()[k])
			sum, all = sum+v*math.Max(0, .5-float64(p.Floats()[k])+float64(q.Floats()[k])), all+v
		}
		want := float32(sum / all)
		if all == 0 {
			want = 0
		}
		optest.Near(t, "loss", optest.Eval(t, marginOf(.5), p, q, w).F32, []float32{want}, 1e-6)
		optest.CheckGrad(t, marginOf(.5), []int{0, 1}, 1e-4, 2e-2, p, q, w)
		if t.Failed() {
			t.Fatalf("problem %d", i)
		}
	}
}

// TestMarginVectors: values worked out by hand. Of no rows the loss is 0, rows of weight 0 are not read, NaN stays NaN.
func TestMarginVectors(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		p, n, w    []float32
		want       float32
		dp, dn     []float32
		wantsToNaN bool
	}{
		"half":      {p: []float32{.5, .9}, n: []float32{.25, .1}, w: []float32{1, 1}, want: .125, dp: []float32{-.5, 0}, dn: []float32{.5, 0}},
		"at margin": {p: []float32{.75}, n: []float32{.25}, w: []float32{1}, want: 0, dp: []float32{0}, dn: []float32{0}},
		"none":      {p: []float32{nan, 1}, n: []float32{0, nan}, w: []float32{0, 0}, want: 0, dp: []float32{0, 0}, dn: []float32{0, 0}},
		"unread":    {p: []float32{nan, 0}, n: []float32{0, 0}, w: []float32{0, 1}, want: .5, dp: []float32{0, -1}, dn: []float32{0, 1}},
		"broken":    {p: []float32{nan}, n: []float32{0}, w: []float32{1}, wantsToNaN: true},
	} {
		n := len(c.p)
		in := []optest.Input{optest.In("p", []int{n}, c.p), optest.In("n", []int{n}, c.n), optest.In("w", []int{n}, c.w)}
		got := optest.Eval(t, marginOf(.5), in...).F32[0]
		if c.wantsToNaN {
			if got == got {
				t.Errorf("%s: got %v, want NaN", name, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		grads, _ := optest.Gradients(t, marginOf(.5), []int{0, 1}, in...)
		if !slices.Equal(grads[0], c.dp) || !slices.Equal(grads[1], c.dn) {
			t.Errorf("%s: gradients %v, want %v and %v", name, grads, c.dp, c.dn)
		}
	}
}

func TestMarginErrors(t *testing.T) {
	_, ns := optest.Nodes([]optest.Input{optest.In("p", []int{3}, make([]float32, 3)), optest.In("short", []int{2}, make([]float32, 2)), optest.In("m", []int{3, 1}, make([]float32, 3))})
	optest.BuildError(t, "matrix", "want scores (R) (got (3, 1))", func() { Margin(ns[2], ns[0], ns[0], 1) })
	optest.BuildError(t, "negatives", "negatives must have shape (3)", func() { Margin(ns[0], ns[1], ns[0], 1) })
	optest.BuildError(t, "weights", "weights must have shape (3)", func() { Margin(ns[0], ns[0], ns[1], 1) })
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{"margin": {
		func() *gorgonia.Node { return Margin(ns[0], ns[0], ns[0], 1) },
		func() *gorgonia.Node { return Margin(ns[0], ns[0], ns[0], .5) },
	}})
}

// marginCases are those of this file with operands that are large enough for several threads.
func marginCases() []optest.Case {
	r := rand.New(rand.NewPCG(84, 2))
	w := optest.F32s(r, "w", 5000)
	for i := range w.Floats() {
		w.Floats()[i] = float32(i % 2)
	}
	return []optest.Case{{Name: "margin", Inputs: []optest.Input{optest.F32s(r, "p", 5000), optest.F32s(r, "n", 5000), w}, WRT: []int{0, 1}, Build: marginOf(.5)}}
}
