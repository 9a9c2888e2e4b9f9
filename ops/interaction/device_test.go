package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

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
	optest.CheckCUDA(t, cases) // package pairs has small blocks
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
	optest.CheckCUDA(t, cases)
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
	before := oncuda.MaxSimProducts
	t.Cleanup(func() { oncuda.MaxSimProducts = before })
	optest.CheckCUDA(t, cases)
	oncuda.MaxSimProducts = 300
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
	optest.CheckCUDA(t, cases)
}

// TestRecurrentOnCUDA looks at problems that rounding changes little: steps that build on each other can make one bit of an operand a
// hundred in a gradient.
func TestRecurrentOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 6))
	problem := func(kind, n, m, tokens, words, channels, steps int) optest.Case {
		p := randomRecurrent(r, kind, n, m, tokens, words, channels)
		if steps > 0 {
			p.how.Steps = steps
		}
		for i := range p.weight {
			p.weight[i] *= .1 // what gates that are shut let through is mostly rounding
		}
		return optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}
	}
	var cases []optest.Case
	add := func(name string, kind, n, m, tokens, words, channels, steps int) {
		for range 100 {
			c := problem(kind, n, m, tokens, words, channels, steps)
			if c.Name = "recurrent attention " + name; moved(t, c) <= 4e-6 {
				cases = append(cases, c)
				return
			}
		}
		t.Fatalf("%s: no problem that rounding changes little", name)
	}
	for _, kind := range []int{0, 1, 2, 4, 1 + 4 + 64, 8 + 64, 16 + 32, 8 + 16 + 64, 1 + 2 + 4 + 8 + 16 + 32 + 64, 1 + 4 + 32, 4 + 64} {
		add(fmt.Sprint(kind), kind, 5, 7, 6, 9, 16, 0)
	}
	for _, s := range [][6]int{{1, 1, 1, 1, 9, 4}, {3, 2, 1, 40, 9, 4}, {2, 3, 37, 1, 5, 1 + 4}, {2, 2, 36, 33, 24, 4}} {
		add(fmt.Sprintf("of %v", s), s[5]+32+64, s[0], s[1], s[2], s[3], s[4], 0)
	}
	add("in four steps", 1+4, 4, 5, 6, 7, 8, 4)
	if !cudatest.Emulated(cudatest.Open(t)) {
		large := problem(4+64, 64, 64, 36, 14, 512, 0)
		large.Name, large.Jumps = "recurrent attention of a large batch", true
		cases = append(cases, large)
	}
	optest.CheckCUDA(t, cases)
}

// moved returns how far results of the host move, relative to the largest element of each, if every operand changes by a bit or none.
func moved(t *testing.T, c optest.Case) (most float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(72, 1))
	before, in := results(t, optest.Engine, c), slices.Clone(c.Inputs)
	for range 3 {
		for i, x := range in {
			if f, ok := x.Data.([]float32); ok {
				near := slices.Clone(f)
				for k, v := range near {
					near[k] = math.Float32frombits(math.Float32bits(v) + uint32(r.IntN(3)) - 1)
				}
				c.Inputs[i] = optest.In(x.Name, x.Shape, near)
			}
		}
		for i, now := range results(t, optest.Engine, c) {
			largest, far := 1e-20, 0.
			for k, v := range before[i] {
				largest, far = max(largest, math.Abs(float64(v))), max(far, math.Abs(float64(now[k]-v)))
			}
			most = max(most, far/largest)
		}
	}
	copy(c.Inputs, in)
	return most
}

// TestRecurrentStaleOnCUDA: NaN in a token gives NaN in the scores of its image, and what it leaves in the working memory does not
// reach the next run.
func TestRecurrentStaleOnCUDA(t *testing.T) {
	d := cudatest.Open(t)
	p := randomRecurrent(rand.New(rand.NewPCG(71, 8)), 4+64, 3, 3, 4, 4, 4)
	for i := range p.images.lengths {
		p.images.lengths[i], p.texts.lengths[i] = 4, 4
	}
	g, ns := optest.Nodes(p.inputs())
	scores := p.build(ns)
	var wrt gorgonia.Nodes
	for _, k := range floats(p.inputs()) {
		wrt = append(wrt, ns[k])
	}
	grads, err := gorgonia.Grad(optest.Dot(scores, scores), wrt...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := exec.Compile(g, exec.Config{Engine: optest.Engine, Device: d, Outputs: append(gorgonia.Nodes{scores}, grads...)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	run := func() (values [][]float32) {
		for k, in := range p.inputs() {
			if err := m.SetInput(ns[k], in.Data); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.RunAll(); err != nil {
			t.Fatal(err)
		}
		for _, n := range append(gorgonia.Nodes{scores}, grads...) {
			v, err := m.Value(n)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v.F32)
		}
		return values
	}
	last := &p.images.rows[len(p.images.rows)-1]
	old := *last
	*last = float32(math.NaN())
	for i, v := range run()[0] {
		if (v != v) != (i >= 6) {
			t.Errorf("NaN in the last image: score %d is %v", i, v)
		}
	}
	*last, p.images.lengths[2] = old, 0
	for i, values := range run() {
		if slices.ContainsFunc(values, func(v float32) bool { return v != v }) {
			t.Errorf("result %d has NaN from the run before: %v", i, values)

		}
	}
}

// TestTooLongOnCUDA: a length of more tokens than there are, an error on the host, gives NaN in all scores of the sequence and in no
// others.
func TestTooLongOnCUDA(t *testing.T) {
	d := cudatest.Open(t)
	r := rand.New(rand.NewPCG(71, 9))
	const n, m, tokens, words, channels = 3, 4, 5, 6, 8
	cross, negative := randomCross(r, 4, n, m, tokens, words, channels), randomNegative(r, 4, n, m, tokens, words, channels)
	recurrent, patches := randomRecurrent(r, 4+64, n, m, tokens, words, channels), randomWordPatch(r, 4+8, n, m, tokens, words, channels)
	graph, filter := randomVectors(r, 4+2, n, m, tokens, words, channels, 7), randomVectors(r, 4, n, m, tokens, words, channels, 7)
	maxsim := problem{n: n, m: m, channels: channels}
	maxsim.images, maxsim.texts = randomSide(r, n, tokens, channels, true, true), randomSide(r, m, words, channels, true, true)
	for _, c := range []optest.Case{
		{Name: "cross", Inputs: cross.inputs(), Build: cross.build},
		{Name: "negative", Inputs: negative.inputs(), Build: negative.build},
		{Name: "negative, moments", Inputs: negative.inputs(), Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			_, moments := negative.nodes(ns)
			return moments
		}},
		{Name: "recurrent", Inputs: recurrent.inputs(), Build: recurrent.build},
		{Name: "word patch", Inputs: patches.inputs(), Build: patches.build},
		{Name: "graph", Inputs: graph.inputs(), Build: graph.build},
		{Name: "filter", Inputs: filter.inputs(), Build: filter.build},
		{Name: "maxsim", Inputs: maxsim.inputs(), Build: maxsim.build},
	} {
		lengths := map[string][]int32{}
		for _, in := range c.Inputs {
			if x, ok := in.Data.([]int32); ok {
				lengths[in.Name] = x
			}
		}
		for last, long := range []string{"images lengths", "texts lengths"} {
			for name, x := range lengths {
				for i := range x {
					x[i] = map[string]int32{"images lengths": tokens, "texts lengths": words}[name]
				}
				if name == long {
					x[len(x)-1]++
				}
			}
			values := onDevice(t, d, c)
			of := len(values) / (n * m) // of a pair
			for i, v := range values {
				if at := [2]int{i / of / m, i / of % m}; (v != v) != (at[last] == [2]int{n, m}[last]-1) {
					t.Errorf("%s, too long: %s: score %v is %v", c.Name, long, at, v)
				}
			}
		}
	}
	mean := optest.Case{Inputs: maxsim.inputs(), Build: func(ns gorgonia.Nodes) *gorgonia.Node {
		images, _ := maxsim.sides(ns)
		return images.Mean()
	}}
	maxsim.images.lengths[n-1] = tokens + 1
	for i, v := range onDevice(t, d, mean) {
		if (v != v) != (i >= (n-1)*tokens) {
			t.Errorf("token mean, too long: token %d has %v", i, v)
		}
	}
}

// onDevice returns what a case builds, by the device.
func onDevice(t *testing.T, d *cuda.Device, c optest.Case) []float32 {
	t.Helper()
	g, ns := optest.Nodes(c.Inputs)
	y := c.Build(ns)
	m, err := exec.Compile(g, exec.Config{Engine: optest.Engine, Device: d, Outputs: gorgonia.Nodes{y}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for k, in := range c.Inputs {
		if err := m.SetInput(ns[k], in.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	v, err := m.Value(y)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(v.F32)
}
