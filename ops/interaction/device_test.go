package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// onCUDA runs cases in blocks of pairs as they are, and in small ones.
func onCUDA(t *testing.T, cases []optest.Case, onHost ...string) {
	t.Helper()
	before := crossLimits
	t.Cleanup(func() { crossLimits = before })
	optest.CheckCUDA(t, cases, onHost...)
	crossLimits.queries, crossLimits.products = 20, 800
	t.Run("small blocks", func(t *testing.T) { optest.CheckCUDA(t, cases, onHost...) })
}

// crossKinds are what randomCross knows: lengths, metrics at either site and at both, and both directions.
var crossKinds = []int{0, 1, 2, 3, 4, 1 + 4, 8, 1 + 8 + 4, 16 + 2, 1 + 16 + 4, 8 + 16, 1 + 2 + 4 + 8 + 16, 32 + 4, 1 + 32}

func TestCrossOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 1))
	var cases []optest.Case
	for _, kind := range crossKinds {
		p := randomCross(r, kind, 5, 7, 6, 9, 16)
		cases = append(cases, optest.Case{Name: fmt.Sprintf("cross attention %d", kind), Inputs: p.inputs(),
			WRT: floats(p.inputs()), Build: p.build})
	}
	for _, s := range [][5]int{{1, 1, 1, 1, 9}, {3, 2, 1, 40, 9}, {2, 3, 37, 1, 5}, {2, 2, 36, 33, 24}} {
		p := randomCross(r, 4, s[0], s[1], s[2], s[3], s[4])
		cases = append(cases, optest.Case{Name: fmt.Sprintf("cross attention of %v", s), Inputs: p.inputs(),
			WRT: floats(p.inputs()), Build: p.build})
	}
	if !cudatest.Emulated(cudatest.Open(t)) {
		p := randomCross(r, 4, 128, 128, 36, 14, 1024)
		cases = append(cases, optest.Case{Name: "large cross attention", Inputs: p.inputs(), WRT: floats(p.inputs()),
			Build: p.build, Jumps: true})
	}
	onCUDA(t, cases)
}

func TestNegativeOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 2))
	var cases []optest.Case
	for _, kind := range []int{0, 1, 2, 4, 1 + 2 + 4, 8 + 4, 16, 2 + 8 + 16 + 4} {
		p := randomNegative(r, kind, 5, 7, 6, 9, 16)
		name := fmt.Sprintf("negative attention %d", kind)
		cases = append(cases, optest.Case{Name: name, Inputs: p.inputs(), WRT: p.rowsOf(p.inputs()), Build: p.build},
			optest.Case{Name: name + ", moments", Inputs: p.inputs(), Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				_, moments := p.nodes(ns)
				return moments
			}})
	}
	onCUDA(t, cases)
}

func TestMaxSimOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 3))
	var cases []optest.Case
	for kind := range 8 {
		p := problem{n: 5, m: 7, channels: 16}
		lengths := kind&1 != 0
		p.images = randomSide(r, p.n, 6, p.channels, lengths, kind&2 != 0 || kind < 2)
		p.texts = randomSide(r, p.m, 9, p.channels, lengths, kind&4 != 0 || kind < 2)
		if p.images.weights == nil && p.texts.weights == nil {
			continue
		}
		cases = append(cases, optest.Case{Name: fmt.Sprintf("maxsim %d", kind), Inputs: p.inputs(), WRT: floats(p.inputs()),
			Build: p.build})
	}
	for _, s := range [][5]int{{1, 1, 1, 1, 1}, {3, 2, 40, 50, 9}} {
		p := problem{n: s[0], m: s[1], channels: s[4]}
		p.images, p.texts = randomSide(r, p.n, s[2], p.channels, true, true), randomSide(r, p.m, s[3], p.channels, false, true)
		cases = append(cases, optest.Case{Name: fmt.Sprintf("maxsim of %v", s), Inputs: p.inputs(), WRT: floats(p.inputs()),
			Build: p.build})
	}
	if !cudatest.Emulated(cudatest.Open(t)) {
		p := problem{n: 128, m: 128, channels: 256}
		p.images, p.texts = randomSide(r, p.n, 50, p.channels, false, true), randomSide(r, p.m, 32, p.channels, true, true)
		cases = append(cases, optest.Case{Name: "large maxsim", Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build})
	}
	before := maxsimProducts
	t.Cleanup(func() { maxsimProducts = before })
	optest.CheckCUDA(t, cases)
	maxsimProducts = 300
	t.Run("small blocks", func(t *testing.T) { optest.CheckCUDA(t, cases) })
}

func TestTokensOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 4))
	soft := []optest.Input{optest.F32s(r, "logits", 410, 1), optest.I32s("lengths", optest.RandomInts(r, 10, 42), 10)}
	with := func(ns gorgonia.Nodes) Tokens { return Tokens{Rows: ns[0], Len: 41, First: 1, Lengths: ns[1]} }
	optest.CheckCUDA(t, []optest.Case{
		{Name: "token softmax", Inputs: soft, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return with(ns).Softmax(ns[0]) }},
		{Name: "token softmax of all", Inputs: soft[:1], WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Tokens{Len: 5}.Softmax(ns[0])
		}},
		{Name: "token spread", Inputs: append(slices.Clone(soft), optest.F32s(r, "values", 10)),
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return with(ns).Spread(ns[2])
			}},
		{Name: "token mean", Inputs: soft, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return with(ns).Mean() }},
		{Name: "token sum", Inputs: soft, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return with(ns).Sum() }},
		{Name: "mismatch samples", Inputs: []optest.Input{optest.F32s(r, "scores", 9, 9), optest.F32s(r, "moments", 9, 9, 3)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return MismatchSamples(ns[0], ns[1])
			}},
	})
}

func TestWordPatchOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 5))
	var cases []optest.Case
	for _, kind := range []int{0, 1, 2, 4, 1 + 2 + 4, 2 + 4 + 8} {
		p := randomWordPatch(r, kind, 5, 7, 6, 9, 16)
		cases = append(cases, optest.Case{Name: fmt.Sprintf("word patch %d", kind), Inputs: p.inputs(), WRT: floats(p.inputs()),
			Build: p.build})
	}
	for _, s := range [][5]int{{1, 1, 1, 1, 9}, {3, 2, 2, 40, 9}, {2, 2, 49, 33, 24}} {
		p := randomWordPatch(r, 4, s[0], s[1], s[2], s[3], s[4])
		cases = append(cases, optest.Case{Name: fmt.Sprintf("word patch of %v", s), Inputs: p.inputs(), WRT: floats(p.inputs()),
			Build: p.build})
	}
	if !cudatest.Emulated(cudatest.Open(t)) {
		p := randomWordPatch(r, 4, 128, 128, 49, 32, 256)
		cases = append(cases, optest.Case{Name: "large word patch", Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build})
	}
	onCUDA(t, cases)
}

func TestVectorsOnCUDA(t *testing.T) {
	d := cudatest.Open(t)
	r := rand.New(rand.NewPCG(62, 6))
	var cases []optest.Case
	add := func(name string, kind, n, m, tokens, words, channels, size int) {
		c := steadyVectors(t, r, kind, n, m, tokens, words, channels, size)
		c.Name = name
		cases = append(cases, c)
	}
	for _, kind := range []int{0, 1, 2, 3, 4, 4 + 2, 8, 16, 8 + 16, 8 + 1, 16 + 2, 4 + 8 + 16, 4 + 8 + 16 + 3} {
		add(fmt.Sprintf("vectors %d", kind), kind, 5, 7, 6, 9, 16, 12)
	}
	for _, s := range [][6]int{{1, 1, 1, 1, 3, 2}, {3, 2, 1, 40, 9, 7}, {2, 3, 37, 1, 5, 70}, {2, 2, 36, 70, 24, 33}} {
		for _, steps := range []int{0, 2} {
			add(fmt.Sprintf("vectors of %v, %d steps", s, steps), 4+steps, s[0], s[1], s[2], s[3], s[4], s[5])
		}
	}
	for _, steps := range []int{0, 2} {
		p := randomVectors(r, 4+steps, 3, 4, 3, 2, 4, 3)
		zeros := randomVectors(r, 4+steps, 3, 4, 3, 2, 4, 3)
		in := zeros.inputs()
		for _, i := range floats(in) {
			clear(in[i].Floats())
		}
		cases = append(cases, optest.Case{Name: fmt.Sprintf("vectors of zeros, %d steps", steps), Inputs: in, WRT: floats(in),
			Build: zeros.build})
		p.texts.rows[5] = float32(math.NaN())
		cases = append(cases, optest.Case{Name: fmt.Sprintf("NaN of a word, %d steps", steps), Inputs: p.inputs(), Build: p.build})
	}
	if !cudatest.Emulated(d) {
		for _, steps := range []int{0, 2} {
			c := vectorsCase(r, 4+8+steps, 32, 64, 36, 40, 256, 64)
			c.Name, c.Jumps = fmt.Sprintf("large vectors, %d steps", steps), true
			cases = append(cases, c)
		}
	}
	before := vectorsLimits
	t.Cleanup(func() { vectorsLimits = before })
	optest.CheckCUDA(t, cases)
	vectorsLimits.nodes, vectorsLimits.images = 60, 2
	t.Run("small blocks", func(t *testing.T) { optest.CheckCUDA(t, cases) })
}

// steadyVectors draws a problem whose gradients say more than rounding: nodes that steps have made alike have some that are
// differences of nearly equal numbers. Those of the host in bfloat16 are near those in float32.
func steadyVectors(t *testing.T, r *rand.Rand, kind, n, m, tokens, words, channels, size int) optest.Case {
	t.Helper()
	half, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 2, Precision: "bf16"})
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	for range 3000 {
		c := vectorsCase(r, kind, n, m, tokens, words, channels, size)
		rounded, steady := results(t, half, c), true
		for i, want := range results(t, optest.Engine, c) {
			largest, far := 0., 0.
			for k, v := range want {
				largest, far = max(largest, math.Abs(float64(v))), max(far, math.Abs(float64(v-rounded[i][k])))
			}
			steady = steady && far <= 1.5e-2*largest
		}
		if steady {
			return c
		}
	}
	t.Fatalf("no steady problem of kind %d", kind)
	return optest.Case{}
}

// vectorsCase draws a problem whose steps leave nodes apart.
func vectorsCase(r *rand.Rand, kind, n, m, tokens, words, channels, size int) optest.Case {
	p := randomVectors(r, kind, n, m, tokens, words, channels, size)
	for step := range p.steps {
		p.keepApart(step)
	}
	return optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}
}

// keepApart has a step leave nodes apart: each looks at itself most, and no bias is what they have in common.
func (p vectorsProblem) keepApart(step int) {
	for name, own := range map[string]float32{"query": 2, "key": 2, "out": 1} {
		w := p.layers[fmt.Sprint(name, step)+"/weight"]
		for _, x := range [][]float32{w, p.layers[fmt.Sprint(name, step)+"/bias"]} {
			for i := range x {
				x[i] /= 10
			}
		}
		for i := range p.size {
			w[i*p.size+i] += own
		}
	}
}
