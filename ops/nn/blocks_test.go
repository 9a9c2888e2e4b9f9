package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// blockCases are the ops of transformer blocks that the CUDA device has no steps for.
func blockCases() []optest.Case {
	r := rand.New(rand.NewPCG(21, 22))
	x, gamma, beta := optest.F32s(r, "x", 300, 84), optest.F32s(r, "gamma", 12), optest.F32s(r, "beta", 12)
	return []optest.Case{
		{Name: "group norm", Inputs: []optest.Input{x, gamma, beta}, WRT: []int{0, 1, 2}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return GroupNorm(GroupNormArgs{X: ns[0], Gamma: ns[1], Beta: ns[2], From: 24, Len: 36, Eps: 1e-5})
		}},
		{Name: "group norm by the root", Inputs: []optest.Input{x, gamma}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return GroupNorm(GroupNormArgs{X: ns[0], Gamma: ns[1], Eps: 1e-5, Root: true})
		}},
		{Name: "gated", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Gated(ns[0], "gelu") }},
		{Name: "bounded", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Bounded(ns[0], "hardswish") }},
		{Name: "scale sequences", Inputs: []optest.Input{x, optest.F32s(r, "scale", 30, 84)}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleSequences(ns[0], ns[1], 10) }},
	}
}

func TestBlockCases(t *testing.T) { optest.CheckCases(t, blockCases()) }

func TestBlocksCUDA(t *testing.T) {
	optest.CheckCUDA(t, blockCases(), "group norm", "group norm dx", "gated", "gated dx", "bounded", "bounded dx", "scale sequences", "scale sequences dx", "scale sequences dscale")
}

func TestGroupNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 33))
	for _, c := range []struct {
		rows, cols, e, from, n int
		root, beta             bool
	}{
		{1, 2, 2, 0, 0, false, true}, {7, 12, 12, 0, 0, true, false}, {40, 30, 5, 0, 10, true, true},
		{40, 30, 5, 15, 10, false, false}, {3, 64, 8, 8, 56, true, false}, {90, 9, 3, 3, 3, false, true},
	} {
		x, gamma, beta := optest.F32s(r, "x", c.rows, c.cols), optest.F32s(r, "gamma", c.e), optest.F32s(r, "beta", c.e)
		const eps = 1e-2
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			a := GroupNormArgs{X: ns[0], Gamma: ns[1], From: c.from, Len: c.n, Eps: eps, Root: c.root}
			if c.beta {
				a.Beta = ns[2]
			}
			return GroupNorm(a)
		}
		end := c.from + c.n
		if c.n == 0 {
			end = c.cols
		}
		want := append([]float32(nil), x.Floats()...)
		for i := range c.rows {
			for at := i*c.cols + c.from; at < i*c.cols+end; at += c.e {
				var mean, squares float64
				for _, v := range x.Floats()[at:][:c.e] {
					mean += float64(v) / float64(c.e)
				}
				if c.root {
					mean = 0
				}
				for _, v := range x.Floats()[at:][:c.e] {
					squares += (float64(v) - mean) * (float64(v) - mean) / float64(c.e)
				}
				for j, v := range x.Floats()[at:][:c.e] {
					want[at+j] = float32((float64(v) - mean) / math.Sqrt(squares+eps) * float64(gamma.Floats()[j]))
					if c.beta {
						want[at+j] += beta.Floats()[j]
					}
				}
			}
		}
		inputs, wrt := []optest.Input{x, gamma}, []int{0, 1}
		if c.beta {
			inputs, wrt = append(inputs, beta), append(wrt, 2)
		}
		optest.Near(t, "group norm", optest.Eval(t, build, inputs...).F32, want, 1e-5)
		optest.CheckGrad(t, build, wrt, 1e-3, 1e-2, inputs...)
	}
	optest.BuildError(t, "columns", "a multiple of the 5 of a group", func() {
		_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 2, 12), optest.F32s(r, "gamma", 5)})
		GroupNorm(GroupNormArgs{X: ns[0], Gamma: ns[1]})
	})
}

func TestGated(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 34))
	for _, name := range []string{"gelu", "gelu_tanh", "quick_gelu", "silu"} {
		of, _ := vector.ActivationOf(name)
		x := optest.F32s(r, "x", 5, 14)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Gated(ns[0], name) }
		want := make([]float32, 5*7)
		for i := range 5 {
			row := x.Floats()[i*14:][:14]
			of.Apply(want[i*7:][:7], row[:7])
			for j := range 7 {
				want[i*7+j] *= row[7+j]
			}
		}
		optest.Near(t, name, optest.Eval(t, build, x).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0}, 1e-3, 1e-2, x)
	}
}

// TestBlockHash: ops that differ in one argument are different nodes.
func TestBlockHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, v := h.M, h.V
	norm := func(a GroupNormArgs) func() *gorgonia.Node {
		return func() *gorgonia.Node { a.X, a.Gamma = m, v; return GroupNorm(a) }
	}
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"group norm": {norm(GroupNormArgs{}), norm(GroupNormArgs{Eps: 1e-5}), norm(GroupNormArgs{Root: true}), norm(GroupNormArgs{Beta: v})},
		"group norm dx": {optest.Variant(groupNorm{n: 12}.gradient(), m, v, m), optest.Variant(groupNorm{n: 12, root: true}.gradient(), m, v, m),
			optest.Variant(groupNorm{n: 6, from: 6}.gradient(), m, v, m), optest.Variant(groupNorm{n: 12, eps: 1}.gradient(), m, v, m)},
		"gated": {func() *gorgonia.Node { return Gated(m, "gelu") }, func() *gorgonia.Node { return Gated(m, "gelu_tanh") }},
	})
}
