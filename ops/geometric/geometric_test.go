package geometric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// geomCase is a call of Geometric with its sizes.
type geomCase struct {
	b, q, k, d, out, tokens, groups int
	bias                            bool
	o                               Options
	budget                          int
}

var (
	geomKernels = []string{Heat, Linear, Squared, Inverse}
	geomScales  = []string{Unit, Relative, None}
)

// inputs are anchors, queue, neighbours, weight and bias. The last anchor but one has its
// own features twice in the queue and as its neighbours, the last has no neighbours.
func (k geomCase) inputs(r *rand.Rand) []optest.Input {
	width := k.d * k.tokens
	in := []optest.Input{
		optest.F32s(r, "anchors", k.b, width), optest.F32s(r, "queue", k.q, width), optest.I32s("neighbours", optest.RandomInts(r, k.b*(k.k-1), k.q), k.b, k.k-1),
		optest.F32s(r, "weight", k.out, k.d), optest.F32s(r, "bias", k.out),
	}
	near, anchors, queue := in[2].Data.([]int32), in[0].Data.([]float32), in[1].Data.([]float32)
	for i := range k.k - 1 {
		near[(k.b-1)*(k.k-1)+i] = -1
	}
	if k.b > 2 && k.k > 3 {
		copy(queue[:width], anchors[(k.b-2)*width:])
		copy(queue[width:2*width], anchors[(k.b-2)*width:])
		copy(near[(k.b-2)*(k.k-1):], []int32{0, 1, 1})
	}
	return in
}

func (k geomCase) build(ns gorgonia.Nodes) *gorgonia.Node {
	a := GeometricArgs{Anchors: ns[0], Queue: ns[1], Neighbours: ns[2], Weight: ns[3], Tokens: k.tokens, Groups: k.groups,
		Kernel: k.o.Kernel, Epsilon: k.o.Epsilon, Scale: k.o.Scale}
	if k.bias {
		a.Bias = ns[4]
	}
	if k.budget == 0 {
		return Geometric(a)
	}
	g := &geometricOp{tokens: k.tokens, groups: k.groups, bias: k.bias, Options: k.o, budget: k.budget}
	in := gorgonia.Nodes{ns[0], ns[1], ns[2], ns[3]}
	if k.bias {
		in = append(in, ns[4])
	}
	return op.Apply(g.forward(), in...)
}

// points returns the K points of anchor a, nil if it has no neighbours.
func (k geomCase) points(in []optest.Input, a int) []float32 {
	width := k.d * k.tokens
	x := append([]float32(nil), in[0].Data.([]float32)[a*width:(a+1)*width]...)
	for _, n := range in[2].Data.([]int32)[a*(k.k-1) : (a+1)*(k.k-1)] {
		if n < 0 {
			return nil
		}
		x = append(x, in[1].Data.([]float32)[int(n)*width:][:width]...)
	}
	return x
}

// head projects points one number at a time.
func (k geomCase) head(in []optest.Input, x []float32) (y []float32) {
	w, bias := in[3].Data.([]float32), in[4].Data.([]float32)
	for ; len(x) > 0; x = x[k.d:] {
		for o := range k.out {
			var s float64
			for c := range k.d {
				s += float64(x[c]) * float64(w[o*k.d+c])
			}
			if k.bias {
				s += float64(bias[o])
			}
			y = append(y, float32(s))
		}
	}
	if k.groups == 0 {
		return y
	}
	n := k.out * k.tokens / k.groups
	for g := 0; g < len(y); g += n {
		norm := max(math.Sqrt(vector.SumSq(y[g:g+n])), 1e-12)
		for c := range n {
			y[g+c] = float32(float64(y[g+c]) / norm)
		}
	}
	return y
}

// want is the loss by the definition.
func (k geomCase) want(in []optest.Input) (s float32) {
	for a := range k.b {
		if x := k.points(in, a); x != nil {
			s += float32(k.o.loss(x, k.head(in, x), k.k) / float64(k.b))
		}
	}
	return s
}

// heads are usual, oblique and Euclidean heads.
func geomHeads() []geomCase {
	return []geomCase{
		{b: 4, q: 9, k: 5, d: 7, out: 6, tokens: 1, groups: 1, bias: true},
		{b: 4, q: 9, k: 5, d: 5, out: 3, tokens: 3, groups: 3},
		{b: 3, q: 8, k: 4, d: 6, out: 4, tokens: 1, groups: 0, bias: true},
		{b: 3, q: 8, k: 4, d: 6, out: 8, tokens: 1, groups: 4},
	}
}

// geomCases are all kernels and scales with all heads.
func geomCases(t *testing.T, f func(t *testing.T, k geomCase, r *rand.Rand)) {
	for h, k := range geomHeads() {
		for _, name := range geomKernels {
			for _, scale := range geomScales {
				k.o = Options{Kernel: name, Epsilon: .8, Scale: scale}
				t.Run(fmt.Sprintf("%s %s head %d", name, scale, h), func(t *testing.T) { f(t, k, rand.New(rand.NewPCG(41, uint64(h)))) })
			}
		}
	}
}

func TestGeometricAgainstDefinition(t *testing.T) {
	geomCases(t, func(t *testing.T, k geomCase, r *rand.Rand) {
		in := k.inputs(r)
		optest.Near(t, "loss", optest.Eval(t, k.build, in...).F32, []float32{k.want(in)}, 1e-5)
	})
}

func TestGeometricGradient(t *testing.T) {
	geomCases(t, func(t *testing.T, k geomCase, r *rand.Rand) {
		wrt := []int{3}
		if k.bias && (k.groups > 0 || k.o.Scale == Unit) { // else only differences count, and it is 0
			wrt = append(wrt, 4)
		}
		in := k.inputs(r)
		// The loss is small: an upstream factor lifts it out of the rounding of float32.
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return arith.WeightedSum([]float32{100}, k.build(ns)) }
		optest.CheckGrad(t, build, wrt, 4e-3, 1e-2, in...)
	})
}

// TestGeometricCoincide has neighbourhoods whose points are all one: nothing to compare,
// and a gradient of 0 where a square root has none.
func TestGeometricCoincide(t *testing.T) {
	geomCases(t, func(t *testing.T, k geomCase, r *rand.Rand) {
		in := k.inputs(r)
		width := k.d * k.tokens
		x := in[0].Data.([]float32)
		for a := 1; a < k.b; a++ {
			copy(x[a*width:(a+1)*width], x[:width])
		}
		for q := range k.q {
			copy(in[1].Data.([]float32)[q*width:], x[:width])
		}
		grads, loss := optest.Gradients(t, k.build, []int{3}, in...)
		if l := loss(); l != 0 {
			t.Errorf("got loss %v, want 0", l)
		}
		for _, g := range grads[0] {
			if g != 0 {
				t.Fatalf("got gradient %v, want 0", g)
			}
		}
	})
}

// TestGeometricChunks wants the loss and gradient of chunks to be those of one for all
// anchors, whatever their size.
func TestGeometricChunks(t *testing.T) {
	k := geomCase{b: 23, q: 40, k: 6, d: 70, out: 20, tokens: 2, groups: 2, bias: true, o: Options{Kernel: Heat, Epsilon: .2, Scale: Unit}}
	in := k.inputs(rand.New(rand.NewPCG(42, 1)))
	all, loss := optest.Gradients(t, k.build, []int{3, 4}, in...)
	for _, anchors := range []int{1, 4, 23} {
		k.budget = anchors * k.k * k.d * k.tokens
		got, l := optest.Gradients(t, k.build, []int{3, 4}, in...)
		if l() != loss() {
			t.Errorf("chunks of %d: got loss %v, want %v", anchors, l(), loss())
		}
		for i := range all {
			optest.Near(t, fmt.Sprintf("gradient with chunks of %d", anchors), got[i], all[i], 1e-6)
		}
	}
}

// TestGeometricMemory bounds the scratch of a large run.
func TestGeometricMemory(t *testing.T) {
	g := &geometricOp{tokens: 1, groups: 1}
	n := g.sizes([]tensor.Shape{{2000, 768}, {65536, 768}, {2000, 149}, {768, 768}}, 16).total()
	if n > 32<<20 {
		t.Errorf("%d MiB of scratch, want at most 128", n>>18)
	}
}

func TestGeometricErrors(t *testing.T) {
	k := geomCase{b: 4, q: 9, k: 5, d: 5, out: 3, tokens: 3, groups: 3, bias: true, o: Options{Kernel: Heat, Epsilon: 1, Scale: Unit}}
	for _, c := range []struct {
		name, want string
		set        func(k *geomCase, in []optest.Input)
	}{
		{"kernel", "unknown kernel", func(k *geomCase, _ []optest.Input) { k.o.Kernel = "cosine" }},
		{"epsilon", "epsilon must be above 0", func(k *geomCase, _ []optest.Input) { k.o.Epsilon = 0 }},
		{"scale", "unknown scale", func(k *geomCase, _ []optest.Input) { k.o.Scale = "" }},
		{"tokens", "tokens must be at least 1", func(k *geomCase, _ []optest.Input) { k.tokens = 0 }},
		{"other tokens", "make features of", func(k *geomCase, _ []optest.Input) { k.tokens = 2 }},
		{"negative groups", "must not be below 0", func(k *geomCase, _ []optest.Input) { k.groups = -1 }},
		{"groups", "do not divide", func(k *geomCase, _ []optest.Input) { k.groups = 4 }},
		{"queue", "the queue has 14", func(_ *geomCase, in []optest.Input) { in[1].Shape = tensor.Shape{9, 14} }},
		{"neighbours", "neighbours of 3", func(_ *geomCase, in []optest.Input) { in[2].Shape = tensor.Shape{3, 4} }},
		{"bias", "bias must have shape", func(_ *geomCase, in []optest.Input) { in[4].Shape = tensor.Shape{4} }},
		{"vector", "want anchors", func(_ *geomCase, in []optest.Input) { in[0].Shape = tensor.Shape{60} }},
	} {
		k, in := k, k.inputs(rand.New(rand.NewPCG(43, 1)))
		c.set(&k, in)
		_, ns := optest.Nodes(in)
		optest.BuildError(t, c.name, c.want, func() { k.build(ns) })
	}
	in := k.inputs(rand.New(rand.NewPCG(43, 1)))
	for _, row := range []int32{9, -2} {
		in[2].Data.([]int32)[7] = row
		optest.RunError(t, "of anchor 1", k.build, in...)
	}
}
