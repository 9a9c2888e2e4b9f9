package exec_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	attentionops "github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// transformer is a chain of pre-norm transformer blocks with dropout and a loss,
// differentiated for all weights. Every layer norm, GELU, dropout and attention of it
// keeps something for the backward pass.
type transformer struct {
	feed
	blocks []exec.Block
	key    []int32
	keyIn  *gorgonia.Node
}

func newTransformer(t testing.TB, depth int) *transformer {
	const batch, tokens, d, heads, keep = 2, 5, 8, 2, 0.75
	rows := batch * tokens
	r := rand.New(rand.NewPCG(11, 12))
	m := &transformer{feed: feed{g: gorgonia.NewGraph()}, key: []int32{17, 23}}
	input := func(name string, shape ...int) *gorgonia.Node {
		n, v := matrix(m.g, r, name, shape...)
		m.inputs, m.values = append(m.inputs, n), append(m.values, v)
		return n
	}
	m.keyIn = gorgonia.NewVector(m.g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("key"))
	x := input("x", rows, d)
	site := uint64(0)
	bits := func(n, cols int) *gorgonia.Node {
		site++
		return nn.DropoutBits(m.keyIn, site, n, cols, keep)
	}
	for i := range depth {
		p := func(name string, shape ...int) *gorgonia.Node { return input(fmt.Sprint(name, i), shape...) }
		from := exec.NextID(m.g)
		h := nn.LayerNorm(x, p("gamma", d), p("beta", d), 1e-5)
		h = nn.Linear(h, p("wqkv", 3*d, d), p("bqkv", 3*d))
		h = attentionops.SelfAttention(attentionops.SelfArgs{QKV: h, Bits: bits(batch*heads*tokens, tokens), Len: tokens, Heads: heads, Keep: keep})
		h = nn.Linear(h, p("wo", d, d), p("bo", d))
		x = arith.Add(x, nn.Dropout(h, bits(rows, d), keep))
		h = nn.LayerNorm(x, p("gamma2", d), p("beta2", d), 1e-5)
		h = nn.GELU(nn.Linear(h, p("w1", 4*d, d), p("b1", 4*d)))
		h = nn.Linear(h, p("w2", d, 4*d), p("b2", d))
		x = arith.Add(x, nn.Dropout(h, bits(rows, d), keep))
		m.blocks = append(m.blocks, exec.Block{From: from, To: exec.NextID(m.g)})
	}
	loss := arith.Mean(nn.GELU(x))
	m.backward = exec.NextID(m.g)
	grads := check.Get(gorgonia.Grad(loss, m.inputs...))(t)
	m.outputs = append(gorgonia.Nodes{loss}, grads...)
	return m
}

func (m *transformer) compile(t testing.TB, cfg exec.Config) *exec.Machine {
	t.Helper()
	vm := m.feed.compile(t, cfg)
	check.OK(t, vm.SetInput(m.keyIn, m.key))
	return vm
}

func (m *transformer) recompute() exec.Recompute {
	return exec.Recompute{Blocks: m.blocks, Backward: m.backward}
}

// run runs the machine on poisoned memory.
func run(t testing.TB, m *exec.Machine) {
	t.Helper()
	m.Poison(float32(math.NaN()))
	check.OK(t, m.RunAll())
}

// sameOutputs fails unless both machines hold the same bits in outputs.
func sameOutputs(t testing.TB, outputs gorgonia.Nodes, got, want *exec.Machine) {
	t.Helper()
	if diff := difference(t, outputs, got, want); diff != "" {
		t.Fatal(diff)
	}
}

// difference names an output in which two machines hold other bits, empty where there is none.
func difference(t testing.TB, outputs gorgonia.Nodes, got, want *exec.Machine) string {
	t.Helper()
	for _, n := range outputs {
		g := check.Get(got.Value(n))(t)
		w := check.Get(want.Value(n))(t)
		for i := range w.F32 {
			if math.Float32bits(g.F32[i]) != math.Float32bits(w.F32[i]) {
				return fmt.Sprintf("%v[%d] is %v, want %v", n, i, g.F32[i], w.F32[i])
			}
		}
	}
	return ""
}

// TestRecompute compares the gradients of a transformer that computes its blocks
// again with those of one that keeps them, bit by bit, for several dropout masks.
func TestRecompute(t *testing.T) {
	const depth = 6
	f := newTransformer(t, depth)
	keep := f.compile(t, exec.Config{})
	again := f.compile(t, exec.Config{Recompute: f.recompute()})
	check.OK(t, again.CheckLayout())
	for range 3 {
		run(t, keep)
		run(t, again)
		sameOutputs(t, f.outputs, again, keep)
		f.key[0]++
	}
	if n := allocs.PerRun(5, func() { run(t, again) }); n != 0 {
		t.Errorf("a run allocates %v times", n)
	}

	// All of a block is computed again but its output: two layer norms, the linear
	// layers but the last, whose values nobody reads, attention, GELU, three masks of
	// bits, the first dropout and sum.
	if got, want := again.Nodes()-keep.Nodes(), depth*(2+3+1+1+3+1+1); got != want {
		t.Errorf("%d nodes are computed again, want %d", got, want)
	}
	kinds := map[string]int{}
	for _, k := range again.Profile().Kinds {
		kinds[k.Kind] = k.Nodes
	}
	for _, k := range keep.Profile().Kinds {
		kinds[k.Kind] -= k.Nodes
	}
	for kind, want := range map[string]int{"linear": 3 * depth, "layer norm": 2 * depth, "layer norm dx": 0, "linear dw": 0} {
		if kinds[kind] != want {
			t.Errorf("%d nodes of kind %q are computed again, want %d", kinds[kind], kind, want)
		}
	}
	// Multiplications of three linear layers of 10 rows: 8x24, 8x8 and 8x32.
	var attention int64
	for _, k := range keep.Profile().Kinds {
		if k.Kind == "self attention" {
			attention = k.FLOPs / int64(keep.Profile().Runs)
		}
	}
	if got, want := again.FLOPs()-keep.FLOPs(), depth*int64(2*10*(8*24+8*8+8*32))+attention; got != want {
		t.Errorf("%d FLOPs are computed again, want %d", got, want)
	}
}

// TestRecomputeMemory tests that memory no longer grows by a block's results with
// every block, but by its output alone.
// The scratch of attention, which does not grow with the depth, is a part of it.
func TestRecomputeMemory(t *testing.T) {
	memory := func(depth int, on bool) int64 {
		f := newTransformer(t, depth)
		cfg := exec.Config{Bind: map[*gorgonia.Node][]float32{}}
		for _, n := range f.outputs[1:] { // gradients live elsewhere, as in training
			cfg.Bind[n] = make([]float32, n.Shape().TotalSize())
		}
		if on {
			cfg.Recompute = f.recompute()
		}
		return f.compile(t, cfg).Memory()
	}
	keep, again := memory(40, false), memory(40, true)
	if again*3 > keep {
		t.Errorf("40 blocks take %d bytes when computed again, %d when kept: want less than a third", again, keep)
	}
	// One block's output is 10 x 8 floats.
	if got, want := memory(41, true)-again, int64(4*10*8); got != want {
		t.Errorf("one more block takes %d bytes, want %d", got, want)
	}
}

// TestRecomputeBound writes gradients into the caller's memory and looks for NaN.
func TestRecomputeBound(t *testing.T) {
	f := newTransformer(t, 3)
	keep := f.compile(t, exec.Config{})
	run(t, keep)
	bind := map[*gorgonia.Node][]float32{}
	for _, n := range f.outputs[1:] {
		bind[n] = make([]float32, n.Shape().TotalSize())
	}
	again := f.compile(t, exec.Config{Recompute: f.recompute(), Bind: bind, CheckNaN: true})
	run(t, again)
	for n, got := range bind {
		want := check.Get(keep.Value(n))(t)
		if !slices.Equal(got, want.F32) {
			t.Errorf("bound %v is %v, want %v", n, got, want.F32)
		}
	}
	f.values[4][3] = float32(math.Inf(1))
	var bad *exec.NonFiniteError
	if err := again.RunAll(); !errors.As(err, &bad) || !strings.HasPrefix(bad.Op, "linear{") {
		t.Errorf("got %v, want the first linear layer", err)
	}
}

// TestRecomputeRandomGraphs cuts graphs with results under several names, in place and
// shared between blocks anywhere.
func TestRecomputeRandomGraphs(t *testing.T) {
	var repeated int
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 6))
		f := randomGraph(t, r, 5+r.IntN(25))
		keep := f.compile(t, exec.Config{}) // TestMemoryPlan compares it with runs that reuse nothing
		run(t, keep)
		rc := exec.Recompute{Backward: f.backward}
		for at := int64(r.IntN(4)); at < f.backward; {
			to := min(f.backward, at+1+int64(r.IntN(9)))
			rc.Blocks = append(rc.Blocks, exec.Block{From: at, To: to})
			at = to + int64(r.IntN(2))
		}
		r.Shuffle(len(rc.Blocks), func(i, j int) { rc.Blocks[i], rc.Blocks[j] = rc.Blocks[j], rc.Blocks[i] })
		m := f.compile(t, exec.Config{Recompute: rc})
		if err := m.CheckLayout(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if m.Nodes() > keep.Nodes() {
			repeated++
		}
		run(t, m)
		sameOutputs(t, f.outputs, m, keep)
	}
	if repeated < 100 {
		t.Errorf("only %d of 150 graphs computed anything again", repeated)
	}
}

// TestRecomputeOutputs keeps what the caller reads, also under another name.
func TestRecomputeOutputs(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("x"))
	h := nn.GELU(x)
	name := op.Detach(h)
	y := nn.GELU(h)
	loss := arith.Sum(nn.GELU(y))
	backward := exec.NextID(g)
	grads := check.Get(gorgonia.Grad(loss, x))(t)
	all := exec.Recompute{Blocks: []exec.Block{{From: 0, To: backward}}, Backward: backward}
	for _, c := range []struct {
		what    string
		outputs gorgonia.Nodes
		want    int // nodes that run
	}{
		{"nothing", gorgonia.Nodes{grads[0]}, 6}, // the backward pass alone reads the block
		{"the loss", gorgonia.Nodes{loss, grads[0]}, 8 + 2},
		{"a result", gorgonia.Nodes{loss, h, grads[0]}, 8 + 1},
		{"a result under another name", gorgonia.Nodes{loss, name, grads[0]}, 8 + 1},
		{"two results", gorgonia.Nodes{loss, h, y, grads[0]}, 8},
	} {
		f := &feed{g: g, inputs: gorgonia.Nodes{x}, values: [][]float32{{.5, -.25}}, outputs: c.outputs}
		m, keep := f.compile(t, exec.Config{Recompute: all}), f.compile(t, exec.Config{})
		run(t, m)
		run(t, keep)
		sameOutputs(t, c.outputs, m, keep)
		if m.Nodes() != c.want {
			t.Errorf("with %s as output %d nodes run, want %d", c.what, m.Nodes(), c.want)
		}
	}
}

func TestRecomputeErrors(t *testing.T) {
	f := newTransformer(t, 1)
	for _, c := range []struct {
		want   string
		blocks []exec.Block
	}{
		{"must hold nodes (got ids from 3 to before 3)", []exec.Block{{3, 3}}},
		{"must hold nodes (got ids from 3 to before 2)", []exec.Block{{3, 2}}},
		{"must hold nodes (got ids from -1 to before 2)", []exec.Block{{-1, 2}}},
		{"must end before the backward pass", []exec.Block{{3, f.backward + 1}}},
		{"overlap", []exec.Block{{6, 9}, {3, 7}}},
	} {
		cfg := exec.Config{Engine: engine, Outputs: f.outputs, Recompute: exec.Recompute{Blocks: c.blocks, Backward: f.backward}}
		check.Fails(exec.Compile(f.g, cfg))(t, c.want)
	}
	cfg := exec.Config{Engine: engine, Outputs: f.outputs, Recompute: exec.Recompute{Blocks: f.blocks}}
	check.Fails(exec.Compile(f.g, cfg))(t, "the backward pass begins with 0")
}

func TestNextID(t *testing.T) {
	g := gorgonia.NewGraph()
	if id := exec.NextID(g); id != 0 {
		t.Errorf("the first id is %d", id)
	}
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("x"))
	before := exec.NextID(g)
	y := nn.GELU(x)
	after := exec.NextID(g)
	if x.ID() >= before || y.ID() < before || y.ID() >= after {
		t.Errorf("x has id %d, y %d: want the marks %d and %d behind each", x.ID(), y.ID(), before, after)
	}
	if nn.GELU(x); exec.NextID(g) != after {
		t.Error("a node that the graph held already took an id")
	}
}
