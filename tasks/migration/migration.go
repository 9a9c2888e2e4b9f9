package migration

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/reid"
)

// Migration measures what an index of an old embedding model gives to queries of a new one. Images are items as the
// old model has them, texts the same items by the new one, row i of one being row i of the other. The states of the
// encoders must be the stored rows. What is right are the neighbours that an item has by the new model, by cosine. It
// holds all rows of both sides, stored and mapped.
type Migration struct {
	Image, Text   tasks.Encoder
	Images, Texts data.Gallery
	TextImage     func(j int) int // item of a text
	// of mapped rows, as a search of the mapped index has it; stored ones are compared by cosine
	Score  scoring.Score
	Engine *kernel.Engine
	tasks.Encoding
}

// migrationNeighbours is how many neighbours of an item count.
const migrationNeighbours = 10

// Run encodes both sides and compares neighbours. It ends early with the error of ctx.
func (t Migration) Run(ctx context.Context) (Scores, error) {
	const k = migrationNeighbours
	n := t.Images.Len()
	s := Scores{Items: n, Unmapped: -1}
	if t.Texts.Len() != n {
		return s, fmt.Errorf("tasks: migration compares items in step (got %d old and %d new rows): give one row of each model for an item", n, t.Texts.Len())
	}
	for j := range n {
		if t.TextImage(j) != j {
			return s, errors.New("tasks: migration compares items in step: give one row of each model for an item")
		}
	}
	if n <= k {
		return s, fmt.Errorf("tasks: %d items have not %d neighbours each: choose a larger split", n, k)
	}
	s.Chance = 100 * k / float64(n-1)
	old, oldMapped, err := t.rows(ctx, t.Image, t.Images, "encoding old rows")
	if err != nil {
		return s, err
	}
	now, nowMapped, err := t.rows(ctx, t.Text, t.Texts, "encoding new rows")
	if err != nil {
		return s, err
	}
	right, err := eval.NeighbourLists(ctx, t.Engine, now, now, n, k)
	if err != nil {
		return s, err
	}
	measure := func(to *float64, queries, rows []float32) {
		if err == nil {
			var found []int32
			found, err = eval.NeighbourLists(ctx, t.Engine, queries, rows, n, k)
			*to = 100 * eval.ListOverlap(right, found, k)
		}
	}
	found, err := t.mapped(ctx, nowMapped, oldMapped, n, k)
	if err != nil {
		return s, err
	}
	s.Mapped = 100 * eval.ListOverlap(right, found, k)
	measure(&s.Old, old, old)
	if len(now) == len(old) {
		measure(&s.Unmapped, now, old)
	}
	return s, err
}

// mapped returns the k old items that are nearest to each of n queries of the new model, by the score of the mapped
// rows.
func (t Migration) mapped(ctx context.Context, queries, rows []float32, n, k int) ([]int32, error) {
	score, err := reid.QueryScorer(t.Engine, t.Score, rows, n)
	if err != nil {
		return nil, err
	}
	c := t.Score.Space.Dim
	return eval.ScoredLists(n, k, func(first, m int, dst []float32) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return score(queries[first*c:(first+m)*c], m, dst)
	})
}

// rows returns the rows of a side, stored and mapped.
func (t Migration) rows(ctx context.Context, m tasks.Encoder, g data.Gallery, phase string) (stored, mapped []float32,
	err error) {
	e := t.Encoding
	e.States = true
	err = e.Run(ctx, m, g, phase, func(x tasks.Encoded) error {
		stored, mapped = append(stored, x.States...), append(mapped, x.Features...)
		return nil
	})
	return stored, mapped, err
}
