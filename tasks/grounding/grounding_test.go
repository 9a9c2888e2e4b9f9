package grounding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks"
)

// boxed are expressions about pictures of 40 x 20 pixels.
type boxed []data.Example

func (x boxed) Len() int                                 { return len(x) }
func (x boxed) Example(i int) data.Example               { return x[i] }
func (boxed) Pictures() int                              { return 1 }
func (boxed) Picture(int, int) (*transform.Image, error) { return transform.NewImage(40, 20), nil }
func (boxed) PictureName(i, _ int) string                { return fmt.Sprint(i) }
func (boxed) Labels() []string                           { return nil }
func (boxed) Columns() []batch.Column                    { return []batch.Column{{Name: "n"}} }
func (boxed) Fill(i int, row batch.Row) error            { row.Floats("n")[0] = float32(i); return nil }

// TestGroundingTask: what is found in batches of two, where expression i lights up patch i of four, row by row.
func TestGroundingTask(t *testing.T) {
	left, right := data.Rect{W: 20, H: 10}, data.Rect{X: 20, W: 20, H: 10}
	x := boxed{
		{Kind: "a", Target: &left, Proposals: []data.Rect{right, left}},
		{Kind: "b", Target: &left, Proposals: []data.Rect{left, right}},
		{}, // without a target
		{Target: &data.Rect{X: 20, Y: 10, W: 30, H: 10}, Proposals: []data.Rect{{X: 20, Y: 10, W: 20, H: 10}}}, // clipped
		// outside
		{Kind: "a", Target: &data.Rect{X: 50, W: 5, H: 5}},
		{Kind: "a", Target: &right}, // dark, without boxes
	}
	heat := func(_ context.Context, b *batch.Batch) ([]float32, error) {
		maps := make([]float32, 4*b.Rows())
		for r := range b.Rows() {
			if i := int(b.Floats("n")[r]); i < 4 {
				maps[4*r+i] = 1
			}
		}
		return maps, nil
	}
	g := Grounding{Heat: heat, Columns: x.Columns(), Samples: x, Rows: x, Encoding: tasks.Encoding{BatchSize: 4}}
	s := check.Get(g.Run(t.Context()))(t)
	if s.All.N != 4 || s.All.Right != 2 || s.All.Points != 2 || s.All.Dark != 1 || s.Without != 1 || s.Outside != 1 ||
		s.Clipped != 1 || s.Sliding != 1 || len(s.Found) != 4 {
		t.Errorf("%+v", s)
	}
	if f := s.Found[2]; f.Example != 3 || f.Target != (data.Rect{X: 20, Y: 10, W: 20, H: 10}) || !f.Right ||
		*f.Chosen != f.Target || f.W != 40 || f.H != 20 {
		t.Errorf("%+v", f)
	}
	if f := s.Found[1]; f.Right || *f.Chosen != right {
		t.Errorf("%+v", f)
	}
	if m := s.Values(); m["accuracy"] != 50 || m["accuracy/b"] != 0 || m["pointing/a"] != 50 {
		t.Errorf("%v", m)
	}
	for _, want := range []string{"expressions", "50.00", "1 with a dark map", "1 looked for in sliding boxes",
		"1 without a target"} {
		if !strings.Contains(s.Table(), want) {
			t.Errorf("no %q in\n%s", want, s.Table())
		}
	}
	g.Samples, g.Rows = x[2:3], x[2:3]
	check.Fails(g.Run(t.Context()))(t, "no expression of 1 has a target")
	g.Samples, g.Rows = x[:1], x[:1]
	g.Heat = func(context.Context, *batch.Batch) ([]float32, error) {
		return []float32{0, 1, float32(math.NaN()), 0}, nil
	}
	if _, err := g.Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "expression 0: its heat map is not finite (NaN of patch 2)") {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken")
	g.Heat = func(context.Context, *batch.Batch) ([]float32, error) { return nil, broken }
	if _, err := g.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
