package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// rotatedRows are n pairs of rows of 6 and 4 channels, where a text is some channels of its image.
func rotatedRows(n int) align.Pairs {
	r := rand.New(rand.NewPCG(3, 4))
	image, text := make([]float32, n*6), make([]float32, n*4)
	for i := range n {
		for k := range 6 {
			image[i*6+k] = float32(r.NormFloat64())
		}
		for k := range 4 {
			text[i*4+k] = image[i*6+(k+2)%6]
		}
	}
	return align.Pairs{Image: align.Table{Data: image, D: 6}, Text: align.Table{Data: text, D: 4}}
}

// TestStartHeads: heads that start from a map have its cosines, with fewer channels those of its
// first ones, and a twin starts like its head.
func TestStartHeads(t *testing.T) {
	pairs := rotatedRows(60)
	for _, dim := range []int{3, 4, 7} {
		cfg := tinyHeads()
		cfg.Model.Heads.Layers, cfg.Model.Heads.Start, cfg.Model.Head.Dim = 0, "cca", dim
		cfg.Momentum.Enabled = true
		h := buildHeads(t, cfg)
		check.Get(StartHeads(t.Context(), h, pairs))(t)
		m := check.Get(align.CCA{Components: min(dim, 4)}.Fit(h.engine, pairs))(t)
		b := batch.New(60, append(h.Image().Columns(), h.Text().Columns()...)...)
		copy(b.Floats(batch.ImageFeatures), pairs.Image.(align.Table).Data)
		copy(b.Floats(batch.TextFeatures), pairs.Text.(align.Table).Data)
		got, want := make([][]float32, 2), make([][]float32, 2)
		for s, e := range []*Encoder{h.Image(), h.Text()} {
			_, x := check.Get2(e.Encode(t.Context(), b))(t)
			got[s] = x
			want[s] = check.Get(m.Apply(h.engine, align.Side(s), pairs.Of(align.Side(s)).(align.Table).Data))(t)
		}
		for i := range 60 {
			for j := range 60 {
				x, y := product(got[0], got[1], dim, i, j), product(want[0], want[1], m.Width(), i, j)
				if d := x - y; d > 1e-4 || d < -1e-4 {
					t.Fatalf("%d channels: heads score %v for image %d and text %d, the map %v", dim, x, i, j, y)
				}
			}
		}
		for _, q := range h.params.List() {
			if !q.Momentum {
				continue
			}
			for i, v := range h.params.MomentumValue(q) {
				if v != h.params.Value(q)[i] {
					t.Fatalf("the EMA copy of %s does not start like it", q.Name)
				}
			}
		}
	}
}

// product is that of row i of x and row j of y, both of width c.
func product(x, y []float32, c, i, j int) (sum float64) {
	for k := range c {
		sum += float64(x[i*c+k]) * float64(y[j*c+k])
	}
	return sum
}

// TestAlignedEnds: a fit ends with its context and leaves the map as it was.
func TestAlignedEnds(t *testing.T) {
	for _, method := range []string{"cca", "ridge", "procrustes", "csa", "asif", "wasserstein"} {
		cfg := config.Default()
		cfg.Model.Align.Method = method
		a := NewAligned(cfg, newEngine(t))
		before := a.Map()
		ctx, cancel := context.WithCancel(t.Context())
		pairs := rotatedRows(60)
		pairs.Text = ending{pairs.Text, cancel}
		if _, err := a.Fit(ctx, pairs); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the error of the context", method, err)
		}
		if a.Map() != before {
			t.Errorf("%s: a fit that ended early has changed the map", method)
		}
	}
}

// TestAlignedTellsFewDirections: columns that repeat each other are told of the side that has them.
func TestAlignedTellsFewDirections(t *testing.T) {
	cfg := config.Default()
	cfg.Model.Align.Method = "cca"
	pairs := rotatedRows(60)
	pairs.Image = repeated{pairs.Image}
	measures := check.Get(NewAligned(cfg, newEngine(t)).Fit(t.Context(), pairs))(t)
	told := map[string]float64{}
	for _, m := range measures {
		told[m.Name] = m.Value
	}
	if _, text := told["fit/directions_text"]; told["fit/directions_image"] != 1 || text {
		t.Errorf("got %v, want one direction of images and nothing said of texts", told)
	}
}

// repeated are rows whose columns are all the first one.
type repeated struct{ rows align.Rows }

func (r repeated) Rows() int  { return r.rows.Rows() }
func (r repeated) Width() int { return r.rows.Width() }
func (r repeated) Row(i int, dst []float32) error {
	err := r.rows.Row(i, dst)
	for k := range dst {
		dst[k] = dst[0]
	}
	return err
}

// ending are rows that cancel a context when the last is read.
type ending struct {
	rows   align.Rows
	cancel func()
}

func (e ending) Rows() int  { return e.rows.Rows() }
func (e ending) Width() int { return e.rows.Width() }
func (e ending) Row(i int, dst []float32) error {
	if i == e.rows.Rows()-1 {
		e.cancel()
	}
	return e.rows.Row(i, dst)
}
