package encoders

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// store is Weights for tests: every parameter has values that depend on its name.
type store struct {
	g      *gorgonia.ExprGraph
	nodes  map[string]*gorgonia.Node
	values map[string][]float32
	// scale, if not 0, draws weights from N(0, scale^2) instead of their own start, so
	// that differences show.
	scale float64
}

func newStore(scale float64) *store {
	return &store{g: gorgonia.NewGraph(), nodes: map[string]*gorgonia.Node{}, values: map[string][]float32{}, scale: scale}
}

func (s *store) Param(name string, _ Traits, init Init, shape ...int) *gorgonia.Node {
	if n := s.nodes[name]; n != nil {
		return n
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, tensor.Shape(shape).TotalSize())
	init(r, v)
	if s.scale != 0 {
		for i := range v {
			v[i] += float32(s.scale * r.NormFloat64())
		}
	}
	s.values[name] = v
	s.nodes[name] = gorgonia.NewTensor(s.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	return s.nodes[name]
}

// list returns "name shape" of every parameter, sorted.
func (s *store) list() []string {
	var out []string
	for name, n := range s.nodes {
		out = append(out, fmt.Sprint(name, " ", n.Shape()))
	}
	slices.Sort(out)
	return out
}

func (s *store) floats(name string, shape ...int) *gorgonia.Node {
	return gorgonia.NewTensor(s.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

func (s *store) ints(name string, n int) *gorgonia.Node {
	return gorgonia.NewTensor(s.g, tensor.Int32, 1, gorgonia.WithShape(n), gorgonia.WithName(name))
}

var engine = func() *kernel.Engine {
	e, err := kernel.New(kernel.Options{Threads: 2})
	if err != nil {
		panic(err)
	}
	return e
}()

// run computes out, a copy, for the given inputs.
func (s *store) run(t testing.TB, out *gorgonia.Node, inputs map[*gorgonia.Node]any) []float32 {
	t.Helper()
	m := check.Get(exec.Compile(s.g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out}}))(t)
	for name, n := range s.nodes {
		check.OK(t, m.SetInput(n, s.values[name]))
	}
	for n, v := range inputs {
		check.OK(t, m.SetInput(n, v))
	}
	check.OK(t, m.RunAll())
	a := check.Get(m.Value(out))(t)
	return slices.Clone(a.F32)
}

// normals returns n values of N(0, 1).
func normals(seed uint64, n int) []float32 {
	v := make([]float32, n)
	Normal(1)(rand.New(rand.NewPCG(seed, 3)), v)
	return v
}
