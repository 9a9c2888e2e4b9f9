package exec_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

var engine = func() *kernel.Engine {
	e, err := kernel.New(kernel.Options{Backend: "plain", Threads: 2})
	if err != nil {
		panic(err)
	}
	return e
}()

// matrix makes a graph input with random values.
func matrix(g *gorgonia.ExprGraph, r *rand.Rand, name string, shape ...int) (*gorgonia.Node, []float32) {
	n := gorgonia.NewTensor(g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	d := make([]float32, tensor.Shape(shape).TotalSize())
	for i := range d {
		d[i] = 2*r.Float32() - 1
	}
	return n, d
}

// feed is a graph with the values of its inputs.
type feed struct {
	g       *gorgonia.ExprGraph
	inputs  gorgonia.Nodes
	values  [][]float32
	outputs gorgonia.Nodes
	// backward is the first id of the backward pass.
	backward int64
}

// randomGraph grows a graph of (R, D) nodes by ops that work in place, copy or name
// memory, and adds the gradients of a scalar at its end.
func randomGraph(t *testing.T, r *rand.Rand, size int) *feed {
	const rows, d = 6, 5
	f := &feed{g: gorgonia.NewGraph()}
	input := func(name string, shape ...int) *gorgonia.Node {
		n, v := matrix(f.g, r, name, shape...)
		f.inputs, f.values = append(f.inputs, n), append(f.values, v)
		return n
	}
	w, b := input("w", d, d), input("b", d)
	gamma, beta := input("gamma", d), input("beta", d)
	table, row := input("table", rows, d), input("row", 1, d)
	pool := gorgonia.Nodes{input("x", rows, d), input("y", rows, d)}
	pick := func() *gorgonia.Node { // recent nodes more often, so that others die
		if r.IntN(3) > 0 {
			return pool[max(0, len(pool)-1-r.IntN(3))]
		}
		return pool[r.IntN(len(pool))]
	}
	for range size {
		var n *gorgonia.Node
		switch r.IntN(10) {
		case 0, 1:
			n = arith.Add(pick(), pick())
		case 2:
			n = nn.GELU(pick())
		case 3:
			n = nn.Linear(pick(), w, b)
		case 4:
			n = op.Detach(pick())
		case 5:
			n = nn.LayerNorm(pick(), gamma, beta, 1e-5)
		case 6:
			n = nn.AddPositions(pick(), row, 1)
		case 7: // a table that may be the same memory as x, read once more for each sequence
			n = nn.AddPositions(pick(), op.Detach(pick()), rows/2)
		case 8:
			n = nn.L2Normalize(nn.AddPositions(pick(), table, rows), 1e-6)
		case 9:
			n = nn.PrependToken(layout.StridedRows(pick(), 1, 1, rows-1), row, rows-1)
		}
		pool = append(pool, n)
	}
	sum := pool[0]
	for _, n := range pool[max(1, len(pool)-4):] {
		sum = arith.Add(sum, n)
	}
	loss := arith.Mean(nn.GELU(nn.AddPositions(nn.Linear(sum, w, b), row, 1)))
	f.backward = exec.NextID(f.g)
	grads := check.Get(gorgonia.Grad(loss, f.inputs[0], f.inputs[1], f.inputs[5], f.inputs[6]))(t)
	f.outputs = append(gorgonia.Nodes{loss, pick()}, grads...)
	return f
}

func (f *feed) compile(t testing.TB, cfg exec.Config) *exec.Machine {
	t.Helper()
	cfg.Engine = engine
	if cfg.Outputs == nil {
		cfg.Outputs = f.outputs
	}
	m := check.Get(exec.Compile(f.g, cfg))(t)
	for i, n := range f.inputs {
		check.OK(t, m.SetInput(n, f.values[i]))
	}
	return m
}

// TestMemoryPlan compares runs that reuse memory with a run in which every node is
// an output, and so has memory of its own. Inputs must survive, and what memory
// held before must not matter.
func TestMemoryPlan(t *testing.T) {
	var saved int
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := randomGraph(t, r, 3+r.IntN(25))
		inputs := fmt.Sprint(f.values)
		m := f.compile(t, exec.Config{})
		if err := m.CheckLayout(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all := f.compile(t, exec.Config{Outputs: append(computed(f.g, f.outputs), f.outputs...)})
		if m.Memory() < all.Memory() {
			saved++
		}
		check.OK(t, all.RunAll())
		for run, poison := range []float32{float32(math.NaN()), 1e9} {
			m.Poison(poison)
			check.OK(t, m.RunAll())
			for _, n := range f.outputs {
				got := check.Get(m.Value(n))(t)
				want := check.Get(all.Value(n))(t)
				for i, w := range want.F32 { // a sum that takes place in a product rounds differently
					if d := math.Abs(float64(got.F32[i] - w)); !(d <= 2e-6*max(1, math.Abs(float64(w)))) {
						t.Fatalf("seed %d, run %d: %v[%d] is %v, want %v", seed, run, n, i, got.F32[i], w)
					}
				}
			}
		}
		if fmt.Sprint(f.values) != inputs {
			t.Fatalf("seed %d: a run changed its inputs", seed)
		}
	}
	if saved < 140 {
		t.Errorf("memory was reused in only %d of 150 graphs", saved)
	}
}

// computed returns the nodes with an op and operands that outputs depend on.
func computed(g *gorgonia.ExprGraph, outputs gorgonia.Nodes) gorgonia.Nodes {
	seen := map[int64]bool{}
	var found gorgonia.Nodes
	var visit func(n *gorgonia.Node)
	visit = func(n *gorgonia.Node) {
		if seen[n.ID()] {
			return
		}
		seen[n.ID()] = true
		it := g.From(n.ID())
		if n.Op() != nil && it.Len() > 0 {
			found = append(found, n)
		}
		for it.Next() {
			visit(it.Node().(*gorgonia.Node))
		}
	}
	for _, n := range outputs {
		visit(n)
	}
	return found
}

// TestInPlaceThroughAlias adds a table that is the summand itself under another name:
// written in place, the second sequence would read sums instead of the table.
func TestInPlaceThroughAlias(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(4, 1), gorgonia.WithName("x"))
	h := arith.Add(x, x) // (4, 1): 2, 4, 6, 8
	out := nn.AddPositions(h, op.Detach(h), 2)
	f := &feed{g: g, inputs: gorgonia.Nodes{x}, values: [][]float32{{1, 2, 3, 4}}, outputs: gorgonia.Nodes{out}}
	m := f.compile(t, exec.Config{})
	check.OK(t, m.RunAll())
	a := check.Get(m.Value(out))(t)
	for i, want := range []float32{2 + 2, 4 + 4, 6 + 2, 8 + 4} {
		if a.F32[i] != want {
			t.Errorf("out[%d] is %v, want %v", i, a.F32[i], want)
		}
	}
}

// TestBoundOutputs writes gradients into memory of the caller's, where sums
// of gradients accumulate, and checks that other results stay out of it.
func TestBoundOutputs(t *testing.T) {
	for seed := range uint64(40) {
		f := randomGraph(t, rand.New(rand.NewPCG(seed, 4)), 12)
		want := f.compile(t, exec.Config{})
		check.OK(t, want.RunAll())
		bind := map[*gorgonia.Node][]float32{}
		for _, n := range f.outputs[2:] {
			bind[n] = make([]float32, n.Shape().TotalSize())
		}
		m, err := exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs, Bind: bind})
		if err != nil {
			continue // two inputs may have one gradient, which has one place
		}
		for i, n := range f.inputs {
			check.OK(t, m.SetInput(n, f.values[i]))
		}
		check.OK(t, m.RunAll())
		for n, got := range bind {
			w := check.Get(want.Value(n))(t)
			for i := range got {
				if got[i] != w.F32[i] {
					t.Fatalf("seed %d: bound %v[%d] is %v, want %v", seed, n, i, got[i], w.F32[i])
				}
			}
		}
	}
}

// TestBuildTwice differentiates and compiles the same graph many times: a run that is
// resumed in another process must compute the same bits, so nothing may depend on the
// order of a map.
func TestBuildTwice(t *testing.T) {
	for seed := range uint64(10) {
		var first string
		var memory int64
		for round := range 8 {
			f := randomGraph(t, rand.New(rand.NewPCG(seed, 5)), 20)
			m := f.compile(t, exec.Config{})
			check.OK(t, m.RunAll())
			var s string
			for _, n := range f.outputs {
				a := check.Get(m.Value(n))(t)
				s += fmt.Sprintf("%v %x\n", n, a.F32)
			}
			if round == 0 {
				first, memory = s, m.Memory()
			} else if s != first || m.Memory() != memory {
				t.Fatalf("seed %d: build %d differs: %d bytes and\n%s\nwant %d bytes and\n%s", seed, round, m.Memory(), s, memory, first)
			}
		}
	}
}
