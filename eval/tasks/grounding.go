package tasks

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
)

// Grounding looks for what expressions name in their pictures: of the boxes of a picture the one that holds most of a
// heat map.
type Grounding struct {
	// Heat returns what the P patches of the picture say for each of the n pairs of a batch, (n, P), as many rows of
	// patches as columns. It is overwritten by the next call.
	Heat      func(ctx context.Context, b *batch.Batch) ([]float32, error)
	Columns   []batch.Column // that Heat reads
	Examples  data.Examples  // with targets
	Rows      data.Gallery   // Examples as rows
	BatchSize int            // pairs at a time, at least 1
	Workers   int            // goroutines that read rows; 0: 1
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
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

// GroundingScores are the outcome.
type GroundingScores struct {
	eval.Grounding
	Found   []Found // of every expression that counts, in order
	Without int     // expressions without a target, left out
	Outside int     // whose target lies outside of the picture, left out
	Clipped int     // whose target reaches out of the picture
	Sliding int     // which were looked for in sliding boxes, as their pictures have no others
}

// Run looks for all expressions. It ends early with the error of ctx. A map that is not finite is an
// *eval.NonFiniteError.
func (g Grounding) Run(ctx context.Context) (GroundingScores, error) {
	var s GroundingScores
	next := 0
	err := Encoding{BatchSize: g.BatchSize, Workers: g.Workers, Progress: g.Progress}.batches(ctx, g.Columns, g.Rows,
		"grounding expressions", func(b *batch.Batch, k int) error {
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
			g.Examples.Len())
	}
	return s, err
}

// find looks for expression i by the map of its patches.
func (g Grounding) find(s *GroundingScores, i int, patches []float32) error {
	e := g.Examples.Example(i)
	if e.Target == nil {
		s.Without++
		return nil
	}
	img, err := g.Examples.Picture(i, 0)
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

// Map names the scores for logs, in percent.
func (s GroundingScores) Map() map[string]float64 {
	m := map[string]float64{}
	add := func(name string, g eval.GroundedGroup) {
		m["accuracy"+name], m["pointing"+name] = g.Accuracy(), g.Pointing()
	}
	add("", s.All)
	for _, k := range s.Kinds {
		add("/"+k.Kind, k)
	}
	return m
}

// Table formats the scores for people.
func (s GroundingScores) Table() string {
	var b strings.Builder
	width := len("all")
	for _, k := range s.Kinds {
		width = max(width, len(k.Kind))
	}
	fmt.Fprintf(&b, "%-*s  %11s  %8s  %6s  %9s  %8s  %6s\n", width, "", "expressions", "IoU >= .5", "chance",
		"reachable", "pointing", "chance")
	row := func(name string, g eval.GroundedGroup) {
		fmt.Fprintf(&b, "%-*s  %11d  %9.2f  %6.2f  %9.2f  %8.2f  %6.2f\n", width, name, g.N, g.Accuracy(), g.Chance(),
			g.Reach(), g.Pointing(), g.ChancePoint())
	}
	row("all", s.All)
	for _, k := range s.Kinds {
		row(k.Kind, k)
	}
	for _, n := range []struct {
		n    int
		what string
	}{
		{s.All.Dark, "with a dark map, which count as wrong"}, {s.Sliding, "looked for in sliding boxes"}, {s.Clipped, "with a target that reaches out of the picture: clipped"},
		{s.Outside, "with a target outside of the picture: left out"}, {s.Without, "without a target: left out"},
	} {
		if n.n > 0 {
			fmt.Fprintf(&b, "%d %s\n", n.n, n.what)
		}
	}
	return b.String()
}
