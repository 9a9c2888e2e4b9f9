package migration

import (
	"context"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Neighbours measures how well a system over stored features keeps the neighbourhoods of each
// side (GeRA, figure 1b), see eval.NeighbourRank. The states of its encoders must be the stored
// rows. With N images, M texts and C channels it keeps 4 bytes x (N*(D+C) + M*(E+C)), D and E
// being the widths of the stored rows, twice.
type Neighbours struct {
	Image, Text   tasks.Encoder
	Images, Texts data.Gallery
	Space         space.Space // of the features: by distance in a Euclidean one, else by cosine
	Engine        *kernel.Engine
	tasks.Encoding
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

// Task implements tasks.Scores.
func (s NeighbourScores) Task() string { return NeighboursName }

// Metric is minus the mean rank of both sides.
func (s NeighbourScores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(NeighboursName, "rank"), Value: -(s.Image + s.Text) / 2}
}

// Values implements tasks.Scores.
func (s NeighbourScores) Values() map[string]float64 {
	return map[string]float64{"image_rank": s.Image, "text_rank": s.Text}
}

// Size implements tasks.Scores.
func (s NeighbourScores) Size() string { return fmt.Sprintf("%d images, %d texts", s.Images, s.Texts) }

// Line implements tasks.Scores.
func (s NeighbourScores) Line() string {
	return fmt.Sprintf("mean rank of the %d nearest stored neighbours: images %.1f, texts %.1f, kept %.1f, chance %.1f",
		eval.PreservedNeighbours, s.Image, s.Text, s.Best, s.Chance[0])
}

// Table implements tasks.Scores.
func (s NeighbourScores) Table() string {
	row := func(side string, v, chance float64) string {
		return fmt.Sprintf("%-30s  %8.1f  %8.1f  %8.1f\n", side, v, s.Best, chance)
	}
	head := fmt.Sprintf("mean rank of %d nearest stored neighbours\n%-30s  %8s  %8s  %8s\n", eval.PreservedNeighbours,
		"", "aligned", "kept", "chance")
	return head + row("images", s.Image, s.Chance[0]) + row("texts", s.Text, s.Chance[1])
}

// JSON implements tasks.Scores.
func (s NeighbourScores) JSON(split, path string) any {
	return struct {
		Task        string  `json:"task"`
		Split       string  `json:"split"`
		Path        string  `json:"path"`
		Images      int     `json:"images"`
		Texts       int     `json:"texts"`
		Neighbours  int     `json:"neighbours"`
		ImageRank   float64 `json:"image_rank"`
		TextRank    float64 `json:"text_rank"`
		Kept        float64 `json:"kept_rank"`
		ImageChance float64 `json:"image_chance_rank"`
		TextChance  float64 `json:"text_chance_rank"`
	}{NeighboursName, split, path, s.Images, s.Texts, eval.PreservedNeighbours, s.Image, s.Text, s.Best, s.Chance[0],
		s.Chance[1]}
}

// Cautions implements tasks.Cautious: of neighbours whose mean rank is that of chance to a twentieth.
func (s NeighbourScores) Cautions() []string {
	var list []string
	for i, side := range []string{"images", "texts"} {
		if rank := []float64{s.Image, s.Text}[i]; s.Chance[i] > 0 && math.Abs(rank/s.Chance[i]-1) < 0.05 {
			list = append(list, "the neighbours of the "+side+" are no nearer than chance after the alignment")
		}
	}
	return list
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
func (t Neighbours) side(ctx context.Context, m tasks.Encoder, g data.Gallery, phase string) (float64, error) {
	n := g.Len()
	if n <= eval.PreservedNeighbours {
		return 0, fmt.Errorf("tasks: %d rows have not %d neighbours each: choose a larger split", n,
			eval.PreservedNeighbours)
	}
	before, after := make([]float32, 0, n*m.Len()*m.Width()), make([]float32, 0, n*m.Dim())
	e := t.Encoding
	e.States = true
	err := e.Run(ctx, m, g, phase, func(x tasks.Encoded) error {
		before, after = append(before, x.States...), append(after, x.Features...)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return eval.NeighbourRank(ctx, t.Engine, before, after, n, eval.PreservedNeighbours, neighbourQueries,
		t.Space.Euclid)
}
