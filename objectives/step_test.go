package objectives

import (
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// sharing is a loss that makes a measure for all losses before its own part.
type sharing string

func (l sharing) Build(s *Step) []Part {
	if len(s.parts) == 0 {
		s.parts = append(s.parts, Part{Name: "shared", Measure: true})
	}
	return []Part{s.Part(string(l), 1, nil), {Name: string(l) + "_accuracy", Measure: true}}
}

// TestPartsAreThoseOfTheLosses: in the order in which losses are added, what the first of
// them makes for all before its own, and as often as they are asked for.
func TestPartsAreThoseOfTheLosses(t *testing.T) {
	s := &Step{}
	s.Add(sharing("a"))
	s.Add(sharing("b"))
	for range 2 {
		var names []string
		for _, p := range s.Parts() {
			names = append(names, p.Name)
		}
		if want := []string{"shared", "a", "a_accuracy", "b", "b_accuracy"}; !slices.Equal(names, want) {
			t.Errorf("got %v, want %v", names, want)
		}
	}
}

// TestTheFirstContrastGivesTheSimilarities: one that is built later changes nothing.
func TestTheFirstContrastGivesTheSimilarities(t *testing.T) {
	n := newBench(t)
	first, second := n.floats("first", make([]float32, 4), 2, 2), n.floats("second", make([]float32, 4), 2, 2)
	s := &Step{}
	for _, x := range []*gorgonia.Node{first, second} {
		s.offer(Contrast{I2T: x, T2I: x})
	}
	if c := s.Similarities(); c.I2T != first || c.T2I != first {
		t.Errorf("got %v and %v", c.I2T, c.T2I)
	}
}

// constants hands out parameters of one number, which they start with.
type constants struct {
	bench *bench
	nodes map[string]*gorgonia.Node
}

func (c constants) Param(name string, _ encoders.Traits, init encoders.Init, shape ...int) *gorgonia.Node {
	if c.nodes[name] == nil {
		value := []float32{0}
		init(nil, value)
		c.nodes[name] = c.bench.floats(name, value, shape...)
	}
	return c.nodes[name]
}

// number is the memory of a parameter.
type number []float32

func (n number) Value() []float32 { return n }
func (n number) Grad() []float32  { return n }

// TestGoldenMatryoshka compares losses over all and over leading channels, and the gradients of their sum, with those of
// PyTorch (tools/goldens/matryoshka.py), and the gradients with finite differences.
func TestGoldenMatryoshka(t *testing.T) {
	pairs := ITC{InBatchWeight: 1, Temperature: 0.25}
	for name, c := range map[string]struct {
		loss  Loss
		part  string
		score scoring.Kind
		space string
		dims  []int
	}{
		"itc":              {&pairs, "itc_in_batch", scoring.Cosine, "sphere", []int{3, 6}},
		"itc on spheres":   {&pairs, "itc_in_batch", scoring.Cosine, "Ob(2,4)", []int{2, 6}},
		"itc of distances": {&pairs, "itc_in_batch", scoring.L2, "euclid", []int{3, 6}},
		"siglip":           {&SigLIP{Weighted: section.Weigh(1), Scale: 4, ScaleMax: 100, Bias: -3}, "siglip", scoring.Cosine, "sphere", []int{3, 6}},
		"hinge":            {&Hinge{Weighted: section.Weigh(1), Margin: 0.2, Negatives: "all"}, "hinge", scoring.Cosine, "sphere", []int{3, 6}},
		"simcse":           {&SimCSE{Weighted: section.Weigh(1), Temperature: 0.25, Head: SentenceHeadAlways}, "simcse", scoring.Cosine, "sphere", []int{3, 6}},
	} {
		golden := readGolden(t, "matryoshka.json")[name]
		rows, width := golden["x"].Shape[0], golden["x"].Shape[1]
		n := newBench(t)
		x, y := n.floats("x", golden["x"].Data, rows, width), n.floats("y", golden["y"].Data, rows, width)
		sp := check.Get(space.Parse(c.space, width))(t)
		on := encoders.NewScope(constants{n, map[string]*gorgonia.Node{}})
		s := &Step{Inputs: feed.New(n.g), Rows: rows, Params: on, Student: &encoders.Context{}, Dims: c.dims,
			Scores: Scores{Params: on, Space: sp, Temperature: 0.25}, PairTerms: Terms{{c.score, 1}},
			Values: func(string) Values { return number{0} }}
		s.Config = section.NewView(nil, nil, section.Facts{})
		s.Online.Image.Features, s.Online.Text.Features = x, y
		if name == "simcse" {
			s.Online.Text = Side{Sequence: encoders.Sequence{Classes: x}, Behind: y, Head: encoders.Projection{Space: sp, Identity: true}}
		}
		s.Add(c.loss)
		var names []string
		var losses gorgonia.Nodes
		for _, p := range s.Parts() {
			if !p.Measure {
				names, losses = append(names, p.Name), append(losses, p.Node)
			}
		}
		if want := []string{c.part, fmt.Sprintf("%s_%d", c.part, c.dims[0]), fmt.Sprintf("%s_%d", c.part, c.dims[1])}; !slices.Equal(names, want) {
			t.Fatalf("%s: parts %v, want %v", name, names, want)
		}
		total := check.Get(gorgonia.Add(check.Get(gorgonia.Add(losses[0], losses[1]))(t), losses[2]))(t)
		grads := check.Get(gorgonia.Grad(total, x, y))(t)
		m := n.compile(append(losses, grads...)...)
		check.OK(t, s.Inputs.Bind(m))
		check.OK(t, s.Inputs.Fill(m, &feed.Step{Batch: batch.New(rows, s.Inputs.Columns()...)}))
		sum := func() (sum float64) {
			check.OK(t, m.RunAll())
			for _, l := range losses {
				sum += float64(check.Get(m.Scalar(l))(t))
			}
			return sum
		}
		sum()
		var parts []float32
		for _, l := range losses {
			parts = append(parts, check.Get(m.Scalar(l))(t))
		}
		nearGolden(t, name+": parts", parts, golden["parts"].Data)
		for i, side := range []string{"x", "y"} {
			got := slices.Clone(check.Get(m.Value(grads[i]))(t).F32)
			var want []float64
			for _, v := range golden["d"+side].Data {
				want = append(want, float64(v))
			}
			nearAll(t, name+": gradient of "+side, got, want, 2e-4) // of distances, which lose digits in float32
			nearAll(t, name+": differences of "+side, got, fdGrad(golden[side].Data, sum), 1e-2)
		}
	}
}
