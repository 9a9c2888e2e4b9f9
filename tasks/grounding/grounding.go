package grounding

import (
	"context"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Grounding looks for what expressions name in their pictures: of the boxes of a picture the one that holds most of a
// heat map.
type Grounding struct {
	// Heat returns what the P patches of the picture say for each of the n pairs of a batch, (n, P), as many rows of
	// patches as columns. It is overwritten by the next call.
	Heat    func(ctx context.Context, b *batch.Batch) ([]float32, error)
	Columns []batch.Column // that Heat reads
	Samples data.Examples  // with targets
	Rows    data.Gallery   // Samples as rows
	tasks.Encoding
}

// Found is what was found for an expression.
type Found struct {
	eval.Grounded
	Example   int         // its number
	Target    data.Rect   // as it is compared: clipped to the picture
	Proposals []data.Rect // of which Box is one; nil without any in the data, see eval.SlidingBoxes
	Chosen    *data.Rect  // nil: the map is dark
	Map       []float64   // (side, side)
	W, H      int         // of the picture in pixels
}

// Run looks for all expressions. It ends early with the error of ctx. A map that is not finite is an
// *eval.NonFiniteError.
func (g Grounding) Run(ctx context.Context) (Scores, error) {
	s := Scores{Samples: g.Samples}
	next := 0
	err := g.Batches(ctx, g.Columns, g.Rows, "grounding expressions", func(b *batch.Batch, k int) error {
		maps, err := g.Heat(ctx, b)
		if err != nil {
			return err
		}
		p := len(maps) / b.Rows()
		for r := range k {
			if err := g.find(&s, next+r, maps[r*p:][:p]); err != nil {
				return err
			}
		}
		next += k
		return nil
	})
	if err == nil && s.All.N == 0 {
		err = fmt.Errorf("tasks: no expression of %d has a target in its picture: name a split with boxes",
			g.Samples.Len())
	}
	return s, err
}

// find looks for expression i by the map of its patches.
func (g Grounding) find(s *Scores, i int, patches []float32) error {
	e := g.Samples.Example(i)
	if e.Target == nil {
		s.Without++
		return nil
	}
	img, err := g.Samples.Picture(i, 0)
	if err != nil {
		return err
	}
	f := Found{Example: i, W: img.W, H: img.H, Proposals: e.Proposals, Map: make([]float64, len(patches))}
	var cut bool
	if f.Target, cut = e.Target.Clip(float64(f.W), float64(f.H)); f.Target.W <= 0 || f.Target.H <= 0 {
		s.Outside++
		return nil
	}
	if cut {
		s.Clipped++
	}
	for k, v := range patches {
		if f.Map[k] = float64(v); v-v != 0 {
			return &eval.NonFiniteError{What: fmt.Sprintf(
				"tasks: expression %d: its heat map is not finite (%v of patch %d)", i, v, k),
				Cure: "the model has diverged, evaluate another checkpoint"}
		}
	}
	boxes := e.Proposals
	if boxes == nil {
		s.Sliding++
		boxes = eval.SlidingBoxes(float64(f.W), float64(f.H))
	}
	side := int(math.Sqrt(float64(len(patches))))
	f.Grounded = s.Add(e.Kind, eval.NewHeatMap(f.Map, side, side, f.W, f.H), f.Target, boxes)
	if f.Box >= 0 {
		f.Chosen = &boxes[f.Box]
	}
	s.Found = append(s.Found, f)
	return nil
}
