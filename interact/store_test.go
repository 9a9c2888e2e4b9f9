package interact

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// store is encoders.Weights and inputs for tests: every parameter starts as its initialiser
// says, and moves by values that depend on its name where move is above 0.
type store struct {
	g      *gorgonia.ExprGraph
	move   float64
	nodes  map[string]*gorgonia.Node
	values map[string]any
}

func newStore(move float64) *store {
	return &store{g: gorgonia.NewGraph(), move: move, nodes: map[string]*gorgonia.Node{}, values: map[string]any{}}
}

// Param implements encoders.Weights.
func (s *store) Param(name string, _ encoders.Traits, init encoders.Init, shape ...int) *gorgonia.Node {
	if n := s.nodes[name]; n != nil {
		return n
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, tensor.Shape(shape).TotalSize())
	init(r, v)
	for i := range v {
		v[i] += float32(s.move * r.NormFloat64())
	}
	return s.floats(name, v, shape...)
}

func (s *store) floats(name string, v []float32, shape ...int) *gorgonia.Node {
	n := gorgonia.NewTensor(s.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	s.nodes[name], s.values[name] = n, v
	return n
}

func (s *store) ints(name string, v []int32) *gorgonia.Node {
	n := gorgonia.NewTensor(s.g, tensor.Int32, 1, gorgonia.WithShape(len(v)), gorgonia.WithName(name))
	s.nodes[name], s.values[name] = n, v
	return n
}

// floatsOf returns the values of a parameter or input.
func (s *store) floatsOf(name string) []float32 { return s.values[name].([]float32) }

var engine = func() *kernel.Engine {
	e, err := kernel.New(kernel.Options{Threads: 2})
	if err != nil {
		panic(err)
	}
	return e
}()

// run computes nodes, copies.
func (s *store) run(t testing.TB, nodes ...*gorgonia.Node) (out [][]float32) {
	t.Helper()
	m, err := exec.Compile(s.g, exec.Config{Engine: engine, Outputs: nodes})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range s.nodes {
		if err := m.SetInput(n, s.values[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		a, err := m.Value(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Clone(a.F32))
	}
	return out
}
