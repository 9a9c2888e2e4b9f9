package exec_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// halfEngine multiplies in bfloat16.
var halfEngine = func() *kernel.Engine {
	e, err := kernel.New(kernel.Options{Backend: "plain", Threads: 2, Precision: "bf16"})
	if err != nil {
		panic(err)
	}
	return e
}()

// halfOp is a test op that reads its operands and writes its results as bfloat16.
type halfOp struct {
	testOp
	reads  []int
	writes []int // -1: the output
	auxes  int   // auxiliary results of the output's shape
	names  *int  // the auxiliary result of operand 0 that the op is an alias of
}

func (o *halfOp) ReadsHalf(operand int) bool { return slices.Contains(o.reads, operand) }
func (o *halfOp) WritesHalf(aux int) bool    { return slices.Contains(o.writes, aux) }

func (o *halfOp) Aux([]tensor.Shape) []exec.AuxSpec {
	return slices.Repeat([]exec.AuxSpec{{Shape: o.shape}}, o.auxes)
}

func (o *halfOp) Alias() (operand, aux int, ok bool) {
	if o.names != nil {
		return 0, *o.names, true
	}
	return o.testOp.Alias()
}

func (o *halfOp) apply(t testing.TB, shape tensor.Shape, in ...*gorgonia.Node) *gorgonia.Node {
	t.Helper()
	o.shape, o.arity = shape, len(in)
	if o.step == nil {
		o.step = func(*exec.Call) {}
	}
	return check.Get(gorgonia.ApplyOp(o, in...))(t)
}

// typeOf returns what an array holds.
func typeOf(t *testing.T, a exec.Array) string {
	t.Helper()
	switch {
	case a.BF16 != nil && a.F32 == nil && len(a.BF16) == a.Len():
		return "bf16"
	case a.BF16 == nil && len(a.F32) == a.Len():
		return "f32"
	}
	t.Fatalf("an array of %v has %d float32 and %d bfloat16 values", a.Shape, len(a.F32), len(a.BF16))
	return ""
}

// TestHalfPlan looks at what a result is stored as, for several readers of it.
func TestHalfPlan(t *testing.T) {
	shape := tensor.Shape{3, 5}
	reader := func(kind string, reads ...int) *halfOp {
		return &halfOp{testOp: testOp{kind: kind}, reads: reads}
	}
	aux := 0
	for _, c := range []struct {
		name   string
		engine *kernel.Engine
		writes []int
		// build returns the outputs of a graph that reads n, which has the auxiliary
		// result 0.
		build     func(n *gorgonia.Node) gorgonia.Nodes
		out, auxs string
	}{
		{"all readers can", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{reader("a", 0).apply(t, shape, n), reader("b", 0, 1).apply(t, shape, n, n)}
		}, "bf16", "f32"},
		{"float32 engine", engine, []int{-1, 0}, func(n *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{reader("a", 0).apply(t, shape, n)}
		}, "f32", "f32"},
		{"the op cannot", halfEngine, nil, func(n *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{reader("a", 0).apply(t, shape, n)}
		}, "f32", "f32"},
		{"one reader cannot", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{reader("a", 0).apply(t, shape, n), reader("b").apply(t, shape, n)}
		}, "f32", "f32"},
		{"as one of its operands", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{reader("a", 1).apply(t, shape, n, n)}
		}, "f32", "f32"},
		{"an output", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{n, reader("a", 0).apply(t, shape, n)}
		}, "f32", "f32"},
		{"an output under another name", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			flat := (&testOp{kind: "flat", alias: true}).apply(t, tensor.Shape{15}, n)
			return gorgonia.Nodes{flat, reader("a", 0).apply(t, shape, n)}
		}, "f32", "f32"},
		{"under another name", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			flat := (&testOp{kind: "flat", alias: true}).apply(t, tensor.Shape{15}, n)
			return gorgonia.Nodes{reader("a", 0).apply(t, shape, flat), reader("b", 0).apply(t, shape, n)}
		}, "bf16", "f32"},
		{"under another name by one that cannot", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			flat := (&testOp{kind: "flat", alias: true}).apply(t, tensor.Shape{15}, n)
			return gorgonia.Nodes{reader("a").apply(t, shape, flat), reader("b", 0).apply(t, shape, n)}
		}, "f32", "f32"},
		{"auxiliary result", halfEngine, []int{0}, func(n *gorgonia.Node) gorgonia.Nodes {
			named := (&halfOp{testOp: testOp{kind: "name"}, names: &aux}).apply(t, shape, n)
			return gorgonia.Nodes{reader("a", 0).apply(t, shape, named), reader("b").apply(t, shape, n)}
		}, "f32", "bf16"},
		{"auxiliary result and output", halfEngine, []int{-1, 0}, func(n *gorgonia.Node) gorgonia.Nodes {
			named := (&halfOp{testOp: testOp{kind: "name"}, names: &aux}).apply(t, shape, n)
			return gorgonia.Nodes{reader("a", 0).apply(t, shape, named), reader("b", 0).apply(t, shape, n)}
		}, "bf16", "bf16"},
		{"auxiliary result that one cannot read", halfEngine, []int{0}, func(n *gorgonia.Node) gorgonia.Nodes {
			named := (&halfOp{testOp: testOp{kind: "name"}, names: &aux}).apply(t, shape, n)
			return gorgonia.Nodes{reader("a").apply(t, shape, named)}
		}, "f32", "f32"},
		{"sum", halfEngine, []int{-1}, func(n *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{gorgonia.Must(gorgonia.Add(n, reader("a", 0).apply(t, shape, n)))}
		}, "f32", "f32"},
	} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(3, 5), gorgonia.WithName("x"))
		var out, auxs string
		n := (&halfOp{writes: c.writes, auxes: 1, testOp: testOp{kind: "writer", prepared: func(c *exec.Call) {
			out, auxs = typeOf(t, c.Out), typeOf(t, c.Aux[0])
		}}}).apply(t, shape, x)
		outputs := c.build(n)
		m, err := exec.Compile(g, exec.Config{Engine: c.engine, Outputs: outputs})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if out != c.out || auxs != c.auxs {
			t.Errorf("%s: stored as %s with %s, want %s with %s", c.name, out, auxs, c.out, c.auxs)
		}
		if err := m.CheckLayout(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, n := range outputs {
			if a, err := m.Value(n); err != nil || typeOf(t, a) != "f32" {
				t.Errorf("%s: output %v is %v (%v)", c.name, n, a, err)
			}
		}
	}
}

// TestHalfBound keeps memory of the caller's float32.
func TestHalfBound(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(4), gorgonia.WithName("x"))
	var got string
	n := (&halfOp{writes: []int{-1}, testOp: testOp{kind: "writer", prepared: func(c *exec.Call) { got = typeOf(t, c.Out) }}}).apply(t, tensor.Shape{4}, x)
	last := (&halfOp{reads: []int{0}, testOp: testOp{kind: "reader"}}).apply(t, tensor.Shape{4}, n)
	bind := map[*gorgonia.Node][]float32{n: make([]float32, 4)}
	if _, err := exec.Compile(g, exec.Config{Engine: halfEngine, Outputs: gorgonia.Nodes{last}, Bind: bind}); err != nil || got != "f32" {
		t.Errorf("a bound result is %s (%v)", got, err)
	}
}

// TestHalfInPlace gives a float32 result no memory of a bfloat16 one, even where both
// have one size in bytes, and the other way round.
func TestHalfInPlace(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(64), gorgonia.WithName("x"))
	calls := map[string]*exec.Call{}
	op := func(kind string, reads, writes []int) *halfOp {
		return &halfOp{reads: reads, writes: writes, testOp: testOp{
			kind: kind, inPlace: []int{0}, prepared: func(c *exec.Call) { calls[kind] = c },
		}}
	}
	a := op("a", nil, []int{-1}).apply(t, tensor.Shape{64}, x)      // bfloat16: 32 elements
	b := op("b", []int{0}, nil).apply(t, tensor.Shape{32}, a)       // float32: 32
	c := op("c", []int{0}, []int{-1}).apply(t, tensor.Shape{64}, b) // bfloat16: 32
	d := op("d", []int{0}, []int{-1}).apply(t, tensor.Shape{64}, c) // bfloat16 in place
	last := op("last", []int{0}, nil).apply(t, tensor.Shape{32}, d) // float32
	m := check.Get(exec.Compile(g, exec.Config{Engine: halfEngine, Outputs: gorgonia.Nodes{last}}))(t)
	for name, want := range map[string][2]string{"b": {"bf16", "f32"}, "c": {"f32", "bf16"}, "d": {"bf16", "bf16"}, "last": {"bf16", "f32"}} {
		if in, out := typeOf(t, calls[name].In[0]), typeOf(t, calls[name].Out); in != want[0] || out != want[1] {
			t.Errorf("%s reads %s and writes %s, want %v", name, in, out, want)
		}
	}
	if &calls["d"].In[0].BF16[0] != &calls["d"].Out.BF16[0] {
		t.Error("d does not work in place")
	}
	if err := m.CheckLayout(); err != nil {
		t.Error(err)
	}
	if got, want := m.Memory(), int64(4*64); got != want {
		t.Errorf("the plan takes %d bytes, want %d", got, want)
	}
}

// TestHalfFinite finds values that are not finite in bfloat16 results.
func TestHalfFinite(t *testing.T) {
	for _, bad := range []uint16{0x7f80, 0xff80, 0x7fc0, 0xffff} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(5), gorgonia.WithName("x"))
		n := (&halfOp{writes: []int{-1}, testOp: testOp{kind: "writer", step: func(c *exec.Call) {
			copy(c.Out.BF16, []uint16{0, 0x7f7f, 0xff7f, bad, bad})
		}}}).apply(t, tensor.Shape{5}, x)
		last := (&halfOp{reads: []int{0}, testOp: testOp{kind: "reader", step: func(c *exec.Call) { clear(c.Out.F32) }}}).apply(t, tensor.Shape{5}, n)
		m, err := exec.Compile(g, exec.Config{Engine: halfEngine, Outputs: gorgonia.Nodes{last}, CheckNaN: true})
		if err != nil {
			t.Fatal(err)
		}
		check.OK(t, m.SetInput(x, make([]float32, 5)))
		var e *exec.NonFiniteError
		if err := m.RunAll(); !errors.As(err, &e) || e.Index != 3 || math.Float32bits(e.Value)>>16 != uint32(bad) {
			t.Errorf("%#x: got %v", bad, err)
		}
	}
}

// TestHalfRecompute compares the gradients of a transformer in bfloat16 that computes
// its blocks again with those of one that keeps them, bit by bit.
func TestHalfRecompute(t *testing.T) {
	f := newHalfTransformer(t, 4)
	keep := compileWith(t, f, exec.Config{Engine: halfEngine})
	again := compileWith(t, f, exec.Config{Engine: halfEngine, Recompute: f.recompute()})
	check.OK(t, errors.Join(keep.CheckLayout(), again.CheckLayout()))
	for range 3 {
		run(t, keep)
		run(t, again)
		sameOutputs(t, f.outputs, again, keep)
		f.key[0]++
	}
	if again.Memory() >= keep.Memory() {
		t.Errorf("%d bytes with blocks computed again, %d without", again.Memory(), keep.Memory())
	}
	full := compileWith(t, f, exec.Config{Engine: engine})
	if keep.Memory() >= full.Memory()*9/10 {
		t.Errorf("bfloat16 takes %d bytes, float32 %d", keep.Memory(), full.Memory())
	}
	if n := allocs.PerRun(5, func() { run(t, again) }); n != 0 {
		t.Errorf("a run allocates %v times", n)
	}
}

// newHalfTransformer is a chain of feed-forward blocks in which layer norms, GELUs and
// the gradients of both and of dropout are read by products.
func newHalfTransformer(t testing.TB, depth int) *transformer {
	const rows, d, keep = 200, 32, 0.75
	r := rand.New(rand.NewPCG(21, 22))
	m := &transformer{feed: feed{g: gorgonia.NewGraph()}, key: []int32{17, 23}}
	input := func(name string, shape ...int) *gorgonia.Node {
		n, v := matrix(m.g, r, name, shape...)
		m.inputs, m.values = append(m.inputs, n), append(m.values, v)
		return n
	}
	m.keyIn = gorgonia.NewVector(m.g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("key"))
	x := input("x", rows, d)
	y := nn.LayerNorm(x, input("gamma", d), input("beta", d), 1e-5)
	for i := range depth {
		p := func(name string, shape ...int) *gorgonia.Node { return input(fmt.Sprint(name, i), shape...) }
		from := exec.NextID(m.g)
		h := nn.LinearGELU(y, p("w1", 4*d, d), p("b1", 4*d))
		h = nn.Linear(h, p("w2", d, 4*d), p("b2", d))
		x, y = nn.AddNorm(nn.AddNormArgs{H: h, X: x, Bits: nn.DropoutBits(m.keyIn, uint64(i), rows, d, keep), Gamma: p("gamma", d), Beta: p("beta", d), Keep: keep, Eps: 1e-5})
		m.blocks = append(m.blocks, exec.Block{From: from, To: exec.NextID(m.g)})
	}
	loss := arith.Mean(nn.GELU(arith.Add(x, y)))
	m.backward = exec.NextID(m.g)
	grads := check.Get(gorgonia.Grad(loss, m.inputs...))(t)
	m.outputs = append(gorgonia.Nodes{loss}, grads...)
	return m
}

// compileWith is compile for an engine of one's own.
func compileWith(t testing.TB, f *transformer, cfg exec.Config) *exec.Machine {
	t.Helper()
	cfg.Outputs = f.outputs
	m := check.Get(exec.Compile(f.g, cfg))(t)
	for i, n := range f.inputs {
		check.OK(t, m.SetInput(n, f.values[i]))
	}
	check.OK(t, m.SetInput(f.keyIn, f.key))
	return m
}

// TestHalfSum adds nothing to what a bfloat16 result holds.
func TestHalfSum(t *testing.T) {
	for _, c := range []struct {
		name string
		half bool
	}{{"float32", false}, {"bfloat16", true}} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(8), gorgonia.WithName("x"))
		var reads, writes []int
		if c.half {
			reads, writes = []int{0, 1}, []int{-1}
		}
		early := (&halfOp{writes: writes, testOp: testOp{kind: "early"}}).apply(t, tensor.Shape{8}, x)
		var accumulate bool
		late := (&halfOp{writes: writes, testOp: testOp{kind: "late", accumulates: true, prepared: func(c *exec.Call) {
			accumulate = c.Accumulate
		}}}).apply(t, tensor.Shape{8}, x)
		sum := (&halfOp{reads: reads, testOp: testOp{kind: "sum", sum: true}}).apply(t, tensor.Shape{8}, early, late)
		check.Get(exec.Compile(g, exec.Config{Engine: halfEngine, Outputs: gorgonia.Nodes{sum}}))(t)
		if accumulate == c.half {
			t.Errorf("%s: accumulate is %t", c.name, accumulate)
		}
	}
}
