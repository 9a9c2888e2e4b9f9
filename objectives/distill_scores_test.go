package objectives

import (
	"errors"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// featuresTeacher is a teacher with the features of a golden.
type featuresTeacher struct {
	u, v []float32
	rows int
}

func (f featuresTeacher) Columns() []batch.Column {
	return []batch.Column{{Name: "seen", Type: batch.Int32}}
}
func (f featuresTeacher) Dim() int { return len(f.u) / f.rows }

func (f featuresTeacher) Features(_ *batch.Batch, side Modality, dst []float32) error {
	copy(dst, f.u)
	if side == Text {
		copy(dst, f.v)
	}
	return nil
}

func (f featuresTeacher) Scores(_ *batch.Batch, dst []float32) error {
	for i := range f.rows {
		for j := range f.rows {
			dst[i*f.rows+j] = 0
			for k := range f.Dim() {
				dst[i*f.rows+j] += f.u[i*f.Dim()+k] * f.v[j*f.Dim()+k]
			}
		}
	}
	return nil
}

// tokensTeacher is a teacher with the tokens of a golden, of unit length.
type tokensTeacher struct {
	featuresTeacher
	images, texts goldenArray
	options       interact.Options
}

func (x tokensTeacher) Local(s *Step, side Modality) encoders.Local {
	of, lengths, name := x.images, []int32{3, 2, 3, 1, 2}, "images"
	if side == Text {
		of, lengths, name = x.texts, []int32{4, 1, 2, 3, 4}, "texts"
	}
	n, channels := of.Shape[1], of.Shape[2]
	return encoders.Local{Rows: s.SharedFloats(name, of.Data, len(lengths)*n, channels), Len: n,
		Lengths: s.SharedInts(name+" lengths", lengths, len(lengths))}
}

func (x tokensTeacher) Interaction(metric encoders.Metric) encoders.Interaction {
	return x.options.Interaction(6, metric)
}

func (tokensTeacher) Frozen(name string, _ ...int) ([]float32, error) {
	if name != interact.BoundaryName {
		return nil, errors.New("there is no " + name)
	}
	return []float32{0.5, 0.125}, nil // that of training and that of evaluation
}

// TestGoldenDistillScores compares the divergence, the loss of the teacher's metric and the gradients of both, by name, with
// PyTorch's (tools/goldens/distill_scores.py), of teachers with features and of those that compare tokens. The divergence
// moves the student alone, the other the metric alone.
func TestGoldenDistillScores(t *testing.T) {
	for name, x := range map[string]struct {
		temperature float64
		metric      string
	}{"scores": {1, ""}, "sharper": {0.5, ""}, "diag": {1, "diag"}, "block_diag": {2, "block_diag"}} {
		golden := readGolden(t, "distill_scores.json")[name]
		teacher := featuresTeacher{golden["u"].Data, golden["v"].Data, golden["x"].Shape[0]}
		l := &DistillScores{Teacher: "run", Weight: 0.5, Temperature: x.temperature, Metric: x.metric, Blocks: 3}
		distillGolden(t, name, golden, l, teacher)
	}
	for name, x := range map[string]struct {
		temperature float64
		metric      string
		options     interact.Options
	}{
		"scan": {1, "diag", interact.Options{Kind: "scan", Metric: "similarity"}},
		"scan of regions": {0.5, "block_diag", interact.Options{Kind: "scan", Metric: "similarity", Pool: "mean",
			Direction: "image_to_text"}},
		"naaf": {1, "block_diag", interact.Options{Kind: "naaf", Metric: "similarity"}},
	} {
		golden := readGolden(t, "distill_tokens.json")[name]
		l := &DistillScores{Teacher: "run", Weight: 0.5, Temperature: x.temperature, Metric: x.metric, Blocks: 3}
		distillGolden(t, name, golden, l, tokensTeacher{images: golden["u"], texts: golden["v"], options: x.options})
	}
}

// distillGolden compares a case.
func distillGolden(t *testing.T, name string, golden map[string]goldenArray, l *DistillScores, teacher ScoreTeacher) {
	b := newBench(t)
	in := feed.New(b.g)
	rows, c := golden["x"].Shape[0], golden["x"].Shape[1]
	w := goldenWeights{b, golden, map[string]*gorgonia.Node{}}
	x, y := b.floats("x", golden["x"].Data, rows, c), b.floats("y", golden["y"].Data, rows, c)
	s := &Step{
		Inputs: in, Rows: rows, Params: encoders.NewScope(w), PairTerms: Terms{{Kind: scoring.Inner, Weight: 1}},
		Scores: Scores{Space: space.Space{Dim: c, Spheres: 1, Euclid: true}},
		Online: Sides{Image: Side{Features: x}, Text: Side{Features: y}}, ScoreTeacher: teacher,
	}
	parts := l.Build(s)
	if columns := in.Columns(); len(columns) != 1 || columns[0].Name != "seen" {
		t.Errorf("%s: the step reads %v", name, columns)
	}
	for _, p := range parts {
		if p.Weight != 0.5 {
			t.Errorf("%s: %s has weight %v", name, p.Name, p.Weight)
		}
	}
	wrt, keys := gorgonia.Nodes{x, y}, []string{"x", "y"}
	total := parts[0].Node
	outputs := gorgonia.Nodes{total}
	if (len(parts) > 1) != (l.Metric != "") {
		t.Fatalf("%s: %d parts with metric %q", name, len(parts), l.Metric)
	}
	if len(parts) > 1 {
		outputs = append(outputs, parts[1].Node)
		// Of both: the divergence adds nothing.
		both := arith.WeightedSum([]float32{1, 1}, parts[0].Node, parts[1].Node)
		grads := check.Get(gorgonia.Grad(both, w.nodes["weight"]))(t)
		outputs = append(outputs, grads...)
	}
	grads := check.Get(gorgonia.Grad(total, wrt...))(t)
	m := b.compile(append(slices.Clone(outputs), grads...)...)
	check.OK(t, in.Bind(m))
	check.OK(t, in.Fill(m, &feed.Step{Batch: seenBatch(rows)}))
	check.OK(t, m.RunAll())
	value := func(n *gorgonia.Node) []float32 {
		return check.Get(m.Value(n))(t).F32
	}
	nearGolden(t, name+" divergence", value(outputs[0]), golden["divergence"].Data)
	for i, key := range keys {
		nearGolden(t, name+" d"+key, value(grads[i]), golden["d"+key].Data)
	}
	if len(parts) > 1 {
		nearGolden(t, name+" task", value(outputs[1]), golden["task"].Data)
		nearGolden(t, name+" dweight", value(outputs[2]), golden["dweight"].Data)
	}
}

// seenBatch is a batch with the column of featuresTeacher.
func seenBatch(rows int) *batch.Batch {
	b := batch.New(rows)
	b.SetInts("seen", make([]int32, rows))
	return b
}
