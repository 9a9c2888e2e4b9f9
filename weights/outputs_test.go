package weights

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// store gives the parameters of a model to an encoder.
type store struct {
	t      *testing.T
	m      *Model
	g      *gorgonia.ExprGraph
	nodes  map[string]*gorgonia.Node
	inputs map[*gorgonia.Node]any
}

func newStore(t *testing.T, m *Model) *store {
	return &store{t: t, m: m, g: gorgonia.NewGraph(), nodes: map[string]*gorgonia.Node{}, inputs: map[*gorgonia.Node]any{}}
}

// Param implements encoders.Weights.
func (s *store) Param(name string, _ encoders.Traits, _ encoders.Init, shape ...int) *gorgonia.Node {
	if n := s.nodes[name]; n != nil {
		return n
	}
	v := make([]float32, count(shape))
	if err := s.m.Read(name, shape, v); err != nil {
		s.t.Fatal(err)
	}
	n := gorgonia.NewTensor(s.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	s.nodes[name], s.inputs[n] = n, v
	return n
}

func (s *store) input(name string, v any, shape ...int) *gorgonia.Node {
	kind := tensor.Float32
	if _, ok := v.([]int32); ok {
		kind = tensor.Int32
	}
	n := gorgonia.NewTensor(s.g, kind, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	s.inputs[n] = v
	return n
}

func (s *store) run(out *gorgonia.Node) []float32 {
	s.t.Helper()
	engine, err := compute.New(compute.Options{Threads: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := exec.Compile(s.g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out}})
	if err != nil {
		s.t.Fatal(err)
	}
	for n, v := range s.inputs {
		if err := m.SetInput(n, v); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := m.RunAll(); err != nil {
		s.t.Fatal(err)
	}
	a, err := m.Value(out)
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.Clone(a.F32)
}

// expected is what a package computed, and of what.
type expected struct {
	t *testing.T
	f *safetensors.File
}

func expect(t *testing.T, name string) expected {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", name, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return expected{t, f}
}

func (e expected) floats(name string) []float32 {
	e.t.Helper()
	x, err := e.f.Float32(name)
	if err != nil {
		e.t.Fatal(err)
	}
	return x
}

func (e expected) ints(name string) (list []int32) {
	e.t.Helper()
	x, err := e.f.Int64(name)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, v := range x {
		list = append(list, int32(v))
	}
	return list
}

// near compares rows of width numbers, but those that skip names.
func near(t *testing.T, what string, got, want []float32, width int, skip func(row int) bool) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	worst := 0.
	defer func() { t.Logf("%s: largest difference %.1e", what, worst) }()
	for i := range got {
		if skip != nil && skip(i/width) {
			continue
		}
		worst = max(worst, math.Abs(float64(got[i]-want[i])))
		if !(math.Abs(float64(got[i]-want[i])) <= 2e-5) {
			t.Errorf("%s: value %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// padding says which rows of texts are padding.
func padding(lengths []int32, tokens int) func(row int) bool {
	return func(row int) bool { return row%tokens >= int(lengths[row/tokens]) }
}

// The text tower computes of BERT's tensors what the package computes.
func TestBERTComputes(t *testing.T) {
	m, e := open1(t, golden("bert")), expect(t, "bert")
	s := newStore(t, m)
	lengths := e.ints("lengths")
	tower := encoders.BERT{Vocab: 24, Positions: 6, Layers: 2, Width: 8, Heads: 2, MLP: 16}
	out := tower.Text(&encoders.Context{}, encoders.NewScope(s).In("text"), encoders.TextArgs{
		IDs: s.input("ids", e.ints("input_ids"), 12), Lengths: s.input("lengths", lengths, 2), Len: 6}, nil)
	near(t, "bert", s.run(out), e.floats("hidden"), 8, padding(lengths, 6))
}

// The image tower computes of the tensors of ViT and timm what the packages compute.
func TestViTComputes(t *testing.T) {
	for name, eps := range map[string]float32{"vit": 1e-12, "timm": 1e-6} {
		m, e := open1(t, golden(name)), expect(t, name)
		s := newStore(t, m)
		tower := encoders.ViT{Size: 12, Patch: 4, Depth: 2, Width: 8, Heads: 2, MLP: 16, Eps: eps}
		out := tower.Forward(encoders.NewScope(s).In("image"), s.input("pixels", e.floats("pixel_values"), 2, 3, 12, 12))
		near(t, name, s.run(out), e.floats("hidden"), 8, nil)
	}
}

// A model of this module reads a checkpoint of ALBEF as its source, and both towers compute what the reference computes.
func TestALBEFComputes(t *testing.T) {
	m, e := open1(t, golden("albef")), expect(t, "albef")
	cfg, err := config.Parse("", nil, []string{
		"model.image.size=12", "model.image.patch=4", "model.image.depth=2", "model.image.width=8", "model.image.heads=2", "model.image.mlp=16",
		"model.text.layers=2", "model.text.fusion_layers=1", "model.text.width=8", "model.text.heads=2", "model.text.mlp=16", "model.text.positions=6",
		"model.head.dim=6", "queue.size=4", "train.batch_size=2", "data.tokens=6"})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.New(compute.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.Open(cfg, model.Options{Engine: engine, Vocab: 24}, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	b, lengths := batch.New(2), e.ints("lengths")
	b.SetFloats(batch.Images, e.floats("pixel_values"))
	b.SetInts(batch.Tokens, e.ints("input_ids"))
	b.SetInts(batch.Lengths, lengths)
	states, _, err := p.Image().Encode(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "images", states, e.floats("image_hidden"), 8, nil)
	states, _, err = p.Text().Encode(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "texts", states, e.floats("text_hidden"), 8, padding(lengths, 6))
}
