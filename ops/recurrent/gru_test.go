package recurrent

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// problem is a GRU with operands for a test.
type problem struct {
	r, l, in, h    int
	lengths        []int32 // nil: all l
	reverse, start bool
	inputs         []optest.Input // x, weight_ih, weight_hh, bias_ih, bias_hh, then start, then lengths
}

// fill draws the operands.
func (p problem) fill(r *rand.Rand) problem {
	p.inputs = []optest.Input{
		optest.F32s(r, "x", p.r*p.l, p.in), optest.F32s(r, "weight_ih", 3*p.h, p.in), optest.F32s(r, "weight_hh", 3*p.h, p.h),
		optest.F32s(r, "bias_ih", 3*p.h), optest.F32s(r, "bias_hh", 3*p.h),
	}
	if p.start {
		p.inputs = append(p.inputs, optest.F32s(r, "start", p.r, p.h))
	}
	if p.lengths != nil {
		p.inputs = append(p.inputs, optest.I32s("lengths", p.lengths, p.r))
	}
	return p
}

// wrt are the operands with a gradient.
func (p problem) wrt() []int {
	if p.start {
		return []int{0, 1, 2, 3, 4, 5}
	}
	return []int{0, 1, 2, 3, 4}
}

func (p problem) build(ns gorgonia.Nodes) *gorgonia.Node {
	a := Args{X: ns[0], WeightIH: ns[1], WeightHH: ns[2], BiasIH: ns[3], BiasHH: ns[4], Len: p.l, Reverse: p.reverse}
	if p.start {
		a.Start = ns[5]
	}
	if p.lengths != nil {
		a.Lengths = ns[len(p.inputs)-1]
	}
	return GRU(a)
}

// states are those of the definition, in plain loops.
func (p problem) states() []float32 {
	x, wi, wh, bi, bh := p.inputs[0].Floats(), p.inputs[1].Floats(), p.inputs[2].Floats(), p.inputs[3].Floats(), p.inputs[4].Floats()
	out := make([]float32, p.r*p.l*p.h)
	sigmoid := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	for s := range p.r {
		h, n := make([]float64, p.h), p.l
		if p.lengths != nil {
			n = int(p.lengths[s])
		}
		if p.start {
			for j := range h {
				h[j] = float64(p.inputs[5].Floats()[s*p.h+j])
			}
		}
		for step := range n {
			t := step
			if p.reverse {
				t = n - 1 - step
			}
			row := x[(s*p.l+t)*p.in:]
			of := func(gate, j int) (input, hidden float64) {
				g := gate*p.h + j
				input, hidden = float64(bi[g]), float64(bh[g])
				for k := range p.in {
					input += float64(wi[g*p.in+k]) * float64(row[k])
				}
				for k := range p.h {
					hidden += float64(wh[g*p.h+k]) * h[k]
				}
				return input, hidden
			}
			next := make([]float64, p.h)
			for j := range next {
				ri, rh := of(0, j)
				zi, zh := of(1, j)
				ni, nh := of(2, j)
				z := sigmoid(zi + zh)
				next[j] = (1-z)*math.Tanh(ni+sigmoid(ri+rh)*nh) + z*h[j]
			}
			h = next
			for j, v := range h {
				out[(s*p.l+t)*p.h+j] = float32(v)
			}
		}
	}
	return out
}

// problems are sequences of random lengths, 0 among them, of all lengths and of one place.
func problems() []problem {
	r := rand.New(rand.NewPCG(31, 32))
	var all []problem
	for i, s := range optest.RandomShapes(r, 16, 9, 7, 6, 19) {
		p := problem{r: s[0], l: s[1], in: s[2], h: s[3], reverse: i%2 == 1, start: i%4 > 1}
		if i%8 != 7 {
			p.lengths = optest.RandomInts(r, p.r, p.l+1)
		}
		all = append(all, p.fill(r))
	}
	return append(all, problem{r: 5, l: 1, in: 3, h: 4}.fill(r), problem{r: 2, l: 3, in: 3, h: 4, lengths: []int32{0, 0}}.fill(r))
}

// TestGRU compares states with the definition and gradients with finite differences.
func TestGRU(t *testing.T) {
	for _, p := range problems() {
		got := optest.Eval(t, p.build, p.inputs...)
		optest.Near(t, "states", got.F32, p.states(), 2e-6)
		optest.CheckGrad(t, p.build, p.wrt(), 1e-2, 1e-3, p.inputs...)
	}
}

// TestLast: the last state of a sequence is that at its last word, or in reverse at its first, and
// 0 without words.
func TestLast(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, lengths := range [][]int32{{3, 0, 4}, nil} {
		for _, reverse := range []bool{false, true} {
			p := problem{r: 3, l: 4, in: 2, h: 5, lengths: lengths, reverse: reverse}.fill(r)
			want, states := make([]float32, 0, 15), p.states()
			for s := range p.r {
				at := 3
				if lengths != nil {
					at = max(int(lengths[s]), 1) - 1
				}
				if reverse {
					at = 0
				}
				want = append(want, states[(s*4+at)*5:][:5]...)
			}
			got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
				var n *gorgonia.Node
				if lengths != nil {
					n = ns[5]
				}
				return Last(p.build(ns), n, 4, reverse)
			}, p.inputs...)
			optest.Near(t, "last states", got.F32, want, 2e-6)
		}
	}
}

// TestLengths: a length outside the sequence fails the run.
func TestLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 36))
	for n, want := range map[int32]string{5: "lengths[1] is 5: want [0, 4]", -1: "lengths[1] is -1: want [0, 4]"} {
		p := problem{r: 2, l: 4, in: 2, h: 3, lengths: []int32{4, n}}.fill(r)
		optest.RunError(t, want, p.build, p.inputs...)
	}
}
