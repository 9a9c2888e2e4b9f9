package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/space"
)

// Neighbours measures how well a system over stored features keeps the neighbourhoods of each
// side (GeRA, figure 1b), see eval.NeighbourRank. The states of its encoders must be the stored
// rows. With N images, M texts and C channels it keeps 4 bytes x (N*(D+C) + M*(E+C)), D and E
// being the widths of the stored rows, twice.
type Neighbours struct {
	Image, Text   Encoder
	Images, Texts data.Gallery
	Space         space.Space // of the features: by distance in a Euclidean one, else by cosine
	Engine        *kernel.Engine
	BatchSize     int            // rows encoded at a time, at least 1
	Workers       int            // goroutines that read rows; 0: 1
	Group         parallel.Group // processes that encode together, see Encoding; nil: this one alone
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// neighbourQueries bounds the rows whose neighbours are followed.
const neighbourQueries = 1000

// NeighbourScores are mean ranks, from 1, that the nearest neighbours of a stored row have after
// the alignment: Best where nothing changes.
type NeighbourScores struct {
	Image, Text float64
	Best        float64
	Chance      [2]float64 // of images and of texts
	Images      int
	Texts       int
}

// Map names the scores for logs.
func (s NeighbourScores) Map() map[string]float64 {
	return map[string]float64{"image_rank": s.Image, "text_rank": s.Text}
}

// Table formats the scores for people.
func (s NeighbourScores) Table() string {
	row := func(side string, v, chance float64) string {
		return fmt.Sprintf("%-30s  %8.1f  %8.1f  %8.1f\n", side, v, s.Best, chance)
	}
	return fmt.Sprintf("mean rank of %d nearest stored neighbours\n%-30s  %8s  %8s  %8s\n", eval.PreservedNeighbours,
		"", "aligned", "kept", "chance") +
		row("images", s.Image, s.Chance[0]) + row("texts", s.Text, s.Chance[1])
}

// Run encodes both sides and ranks. It ends early with the error of ctx.
func (t Neighbours) Run(ctx context.Context) (NeighbourScores, error) {
	const k = eval.PreservedNeighbours
	s := NeighbourScores{Images: t.Images.Len(), Texts: t.Texts.Len(), Best: (k + 1) / 2.}
	s.Chance = [2]float64{float64(s.Images) / 2, float64(s.Texts) / 2}
	var err error
	if s.Text, err = t.side(ctx, t.Text, t.Texts, "encoding texts"); err != nil {
		return s, err
	}
	s.Image, err = t.side(ctx, t.Image, t.Images, "encoding images")
	return s, err
}

// side is the mean rank of a side.
func (t Neighbours) side(ctx context.Context, m Encoder, g data.Gallery, phase string) (float64, error) {
	n := g.Len()
	if n <= eval.PreservedNeighbours {
		return 0, fmt.Errorf("tasks: %d rows have not %d neighbours each: choose a larger split", n,
			eval.PreservedNeighbours)
	}
	before, after := make([]float32, 0, n*m.Len()*m.Width()), make([]float32, 0, n*m.Dim())
	e := Encoding{BatchSize: t.BatchSize, Workers: t.Workers, Group: t.Group, Progress: t.Progress, States: true}
	err := e.Run(ctx, m, g, phase, func(x Encoded) error {
		before, after = append(before, x.States...), append(after, x.Features...)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return eval.NeighbourRank(ctx, t.Engine, before, after, n, eval.PreservedNeighbours, neighbourQueries,
		t.Space.Euclid)
}
