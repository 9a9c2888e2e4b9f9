package objectives

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
)

// noRows is a pool without rows.
type noRows struct{}

func (noRows) Rows() int                { return 0 }
func (noRows) Width() int               { return 3 }
func (noRows) Row(int, []float32) error { panic("there is none") }

// TestLossesNeed: a step that lacks what a loss reads is an error that names the loss, before anything is drawn or pooled.
func TestLossesNeed(t *testing.T) {
	n := newBench(t)
	side := func(tokens int) Side { // of two images, with a class token
		return Side{Head: encoders.Projection{Space: space.Space{Dim: 3, Spheres: 1}, Identity: true}, Sequence: encoders.Sequence{
			Tokens: n.floats("tokens", make([]float32, 2*(1+tokens)*3), 2*(1+tokens), 3), Len: 1 + tokens, Width: 3, Begin: 1,
		}}
	}
	regions := side(4)
	regions.Lengths = n.ints("regions", 2, 5)
	local := func(x Side) func() {
		return func() { TCL{Local: true, Grid: 1}.localImage(&Step{Rows: 2, Teacher: Sides{Image: x}}) }
	}
	for name, c := range map[string]struct {
		build func()
		want  string
	}{
		"five patches": {local(side(5)), "itc_local: reads a square of patches, and the image tower gives 5 tokens of another kind"},
		"regions":      {local(regions), "itc_local: reads a square of patches, and the image tower gives 4 tokens of another kind"},
		"empty pool": {func() {
			(&KLOT{Weighted: section.Weigh(1), Rows: 2}).Build(&Step{Rows: 2, Inputs: feed.New(n.g), Reference: &Reference{}, ImagePool: noRows{}, TextPool: noRows{}})
		}, "klot: needs rows to draw from"},
	} {
		err := func() (err error) {
			defer op.Catch(&err)
			c.build()
			return nil
		}()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %s", name, err, c.want)
		}
	}
}
