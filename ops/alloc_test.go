package ops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
)

// opCase is an op with operands that are large enough for several threads.
type opCase struct {
	name   string
	inputs []input
	wrt    []int // inputs with a gradient
	build  func(ns gorgonia.Nodes) *gorgonia.Node
	// gemm marks results that pass through a matrix product, whose bits may depend
	// on how the library cuts it into tiles.
	gemm bool
}

// opCases is the table that the tests of all ops go through.
func opCases() []opCase {
	r := rand.New(rand.NewPCG(11, 12))
	const rows, d = 120, 321
	x, y := f32s(r, "x", rows, d), f32s(r, "y", rows, d)
	vector, other := f32s(r, "vector", d), f32s(r, "other", d)
	key := i32s("key", []int32{3, 4}, 2)
	ids := i32s("ids", randomInts(r, 90, 60), 90)
	return append(slices.Concat(attentionCases(), hostCases(), sinkhornCases(), geodesicCases(), sequenceCases(), geometricCases(), metricCases(), distanceCases(), sigmoidCases()), []opCase{
		{name: "add", inputs: []input{x, y}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Add(ns[0], ns[1]) }},
		{name: "linear", inputs: []input{x, f32s(r, "w", 77, d), f32s(r, "b", 77)}, wrt: []int{0, 1, 2}, gemm: true,
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) }},
		{name: "linear part", inputs: []input{x, f32s(r, "w", 77, d), f32s(r, "b", 77)}, wrt: []int{0, 1, 2}, gemm: true,
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return LinearPart(ns[0], ns[1], ns[2], 20, 30) }},
		{name: "linear gelu", inputs: []input{x, f32s(r, "w", 77, d), f32s(r, "b", 77)}, wrt: []int{0, 1, 2}, gemm: true,
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return LinearGELU(ns[0], ns[1], ns[2]) }},
		{name: "layer norm", inputs: []input{x, vector, other}, wrt: []int{0, 1, 2},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-5) }},
		{name: "arccos", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return ArcCos(ns[0]) }},
		{name: "gelu", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return GELU(ns[0]) }},
		{name: "relu", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return ReLU(ns[0]) }},
		{name: "transpose", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Transpose(ns[0]) }},
		{name: "dropout", inputs: []input{x, key}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Dropout(ns[0], DropoutBits(ns[1], 1, rows, d, 0.9), 0.9)
			}},
		{name: "dropout of whole words", inputs: []input{f32s(r, "x", 300, 64), key}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Dropout(ns[0], DropoutBits(ns[1], 1, 300, 64, 0.9), 0.9)
			}},
		{name: "add norm", inputs: []input{x, y, vector, other, key}, wrt: []int{0, 1, 2, 3},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				sum, norm := AddNorm(ns[0], ns[1], DropoutBits(ns[4], 1, rows, d, 0.9), ns[2], ns[3], 0.9, 1e-5)
				return Add(sum, GELU(norm))
			}},
		{name: "add norm without dropout", inputs: []input{x, y, vector, other}, wrt: []int{0, 1, 2, 3},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				_, norm := AddNorm(ns[0], ns[1], nil, ns[2], ns[3], 1, 1e-5)
				return norm
			}},
		{name: "embed", inputs: []input{x, ids}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }},
		{name: "gather rows", inputs: []input{x, ids}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return GatherRows(ns[0], ns[1], 2) }},
		{name: "add positions", inputs: []input{x, y}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 30) }},
		{name: "add row", inputs: []input{x, vector}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddRow(ns[0], ns[1]) }},
		{name: "l2 normalize", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 1e-12) }},
		{name: "patchify", inputs: []input{f32s(r, "images", 4, 3, 64, 64)}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Patchify(ns[0], 16) }},
		{name: "prepend token", inputs: []input{x, vector}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return PrependToken(ns[0], ns[1], 30) }},
		{name: "strided rows", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return StridedRows(ns[0], 1, 2, 60) }},
		{name: "slice of rows", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return StridedRows(ns[0], 10, 1, 100) }},
		{name: "sum", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Sum(ns[0]) }},
		{name: "mean", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Mean(ns[0]) }},
		{name: "weighted sum", inputs: []input{x, y}, wrt: []int{0, 1},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return WeightedSum([]float32{2, 3}, Sum(ns[0]), Mean(ns[1])) }},
		{name: "cross entropy with labels", inputs: []input{f32s(r, "x", 5, 9000), i32s("labels", []int32{7, -1, 8999, 4096, 0}, 5)}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1]})
			}},
		{name: "cross entropy with ids and a teacher", wrt: []int{0},
			inputs: []input{f32s(r, "x", 5, 9000), f32s(r, "t", 5, 9000), {"alpha", nil, []float32{0.4}},
				i32s("rows", []int32{7, 3, 7, 11, 400}, 5), i32s("cols", randomInts(r, 9000, 300), 9000)},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Teacher: ns[1], Alpha: ns[2], RowIDs: ns[3], ColIDs: ns[4]})
			}},
		{name: "detach", inputs: []input{x}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Add(ns[0], Detach(ns[0])) }},
	}...)
}

// compile makes a machine for the op and its gradients, under a fixed weighting.
func (c opCase) compile(t testing.TB, e *kernel.Engine) (*exec.Machine, gorgonia.Nodes) {
	t.Helper()
	inputs := append([]input(nil), c.inputs...)
	g, ns := nodes(inputs)
	cost := c.build(ns)
	outputs := gorgonia.Nodes{cost}
	if shape := cost.Shape(); len(shape) > 0 && len(c.wrt) > 0 {
		w := f32s(rand.New(rand.NewPCG(13, 14)), "test weights", shape...)
		wn := gorgonia.NewTensor(g, gorgonia.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(w.name))
		inputs, ns = append(inputs, w), append(ns, wn)
		cost = dotForTest(cost, wn)
	}
	if len(c.wrt) > 0 {
		var wrt gorgonia.Nodes
		for _, i := range c.wrt {
			wrt = append(wrt, ns[i])
		}
		grads, err := gorgonia.Grad(cost, wrt...)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, grads...)
	}
	m, err := exec.Compile(g, exec.Config{Engine: e, Outputs: outputs})
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range inputs {
		if err := m.SetInput(ns[i], in.data); err != nil {
			t.Fatal(err)
		}
	}
	return m, outputs
}

func TestOpsAllocateNothing(t *testing.T) {
	for _, c := range opCases() {
		m, _ := c.compile(t, testEngine)
		n := testing.AllocsPerRun(20, func() {
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: a run with its gradient allocates %v times", c.name, n)
		}
	}
}

// TestThreadCount wants the same bits from any number of threads.
func TestThreadCount(t *testing.T) {
	engines := map[int]*kernel.Engine{}
	for _, n := range []int{1, 2, 5} {
		e, err := kernel.New(kernel.Options{Threads: n})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		engines[n] = e
	}
	values := func(c opCase, threads int) string {
		m, outputs := c.compile(t, engines[threads])
		if err := m.RunAll(); err != nil {
			t.Fatal(err)
		}
		var s []string
		for _, n := range outputs {
			a, err := m.Value(n)
			if err != nil {
				t.Fatal(err)
			}
			s = append(s, fmt.Sprint(a.F32, a.I32))
		}
		return fmt.Sprint(s)
	}
	for _, c := range opCases() {
		if c.gemm {
			continue
		}
		want := values(c, 1)
		for _, threads := range []int{2, 5} {
			if values(c, threads) != want {
				t.Errorf("%s: %d threads give other bits than one", c.name, threads)
			}
		}
	}
}

// TestOverwrites fills the results of a run with NaN and wants the same ones from
// the next: an op must write every element, zeros too. Matrix products are the same
// bits for the same operands and threads.
func TestOverwrites(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range opCases() {
		m, outputs := c.compile(t, testEngine)
		var want [][]float32
		for run := range 2 {
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
			for i, n := range outputs {
				a, err := m.Value(n)
				if err != nil {
					t.Fatal(err)
				}
				got := slices.Clone(a.F32)
				for _, v := range a.I32 {
					got = append(got, float32(v))
				}
				if run == 0 {
					want = append(want, got)
				} else if !slices.Equal(got, want[i]) {
					t.Errorf("%s: result %d keeps values of the run before", c.name, i)
				}
			}
			for _, n := range outputs {
				a, err := m.Value(n)
				if err != nil {
					t.Fatal(err)
				}
				kernel.Fill(a.F32, nan)
				for j := range a.I32 {
					a.I32[j] = -1 << 31
				}
			}
		}
	}
}
