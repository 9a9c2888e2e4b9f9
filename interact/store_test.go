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

// startsAsWithout compares the scores of an interaction without metrics with those of every form at either site and at both,
// as they start: to the bit, with weights where they are asked for alone.
func startsAsWithout(t *testing.T, with func(attention, similarity encoders.Metric) encoders.Interaction) {
	t.Helper()
	_, want := scores(t, with(encoders.Metric{}, encoders.Metric{}), 0, false)
	for _, form := range []string{"cosine", "diag", "block_diag", "dense"} {
		for sites := 1; sites < 4; sites++ {
			var of [2]encoders.Metric
			for k := range of {
				if sites>>k&1 != 0 {
					of[k] = encoders.Metric{Form: form, Blocks: 2, Dim: channels}
				}
			}
			s, got := scores(t, with(of[0], of[1]), 0, false)
			if !slices.Equal(got, want) {
				t.Errorf("%s at sites %b starts with other scores than without", form, sites)
			}
			for k, site := range []string{encoders.AttentionSite, encoders.SimilaritySite} {
				if has := s.nodes[encoders.MetricName(site)] != nil; has != (form != "cosine" && sites>>k&1 != 0) {
					t.Errorf("%s at sites %b: weights of %q %t", form, sites, site, has)
				}
			}
		}
	}
}
