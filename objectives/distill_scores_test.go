package objectives

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
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

// TestGoldenDistillScores compares the divergence, the loss of the teacher's metric and the gradients of both, by name, with
// PyTorch's (tools/goldens/distill_scores.py). The divergence moves the student alone, the other the metric alone.
func TestGoldenDistillScores(t *testing.T) {
	temperatures := map[string]float64{"scores": 1, "sharper": 0.5, "diag": 1, "block_diag": 2}
	for name, golden := range readGolden(t, "distill_scores.json") {
		b := newBench(t)
		in := feed.New(b.g)
		rows, c := golden["x"].Shape[0], golden["x"].Shape[1]
		teacher := featuresTeacher{golden["u"].Data, golden["v"].Data, rows}
		w := goldenWeights{b, golden, map[string]*gorgonia.Node{}}
		x, y := b.floats("x", golden["x"].Data, rows, c), b.floats("y", golden["y"].Data, rows, c)
		s := &Step{
			Inputs: in, Rows: rows, Params: encoders.NewScope(w), PairTerms: Terms{{Kind: scoring.Inner, Weight: 1}},
			Scores: Scores{Space: space.Space{Dim: c, Spheres: 1, Euclid: true}},
			Online: Sides{Image: Side{Features: x}, Text: Side{Features: y}},
		}
		s.ScoreTeacher = teacher
		l := &DistillScores{Teacher: "run", Weight: 0.5, Temperature: temperatures[name]}
		if name == "diag" || name == "block_diag" {
			l.Metric, l.Blocks = name, 3
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
}

// seenBatch is a batch with the column of featuresTeacher.
func seenBatch(rows int) *batch.Batch {
	b := batch.New(rows)
	b.SetInts("seen", make([]int32, rows))
	return b
}
