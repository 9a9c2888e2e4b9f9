package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// Migration measures what an index of an old embedding model gives to queries of a new one. Images are items as the
// old model has them, texts the same items by the new one, row i of one being row i of the other. The states of the
// encoders must be the stored rows. What is right are the neighbours that an item has by the new model, by cosine. It
// holds all rows of both sides, stored and mapped.
type Migration struct {
	Image, Text   Encoder
	Images, Texts data.Gallery
	TextImage     func(j int) int // item of a text
	// of mapped rows, as a search of the mapped index has it; stored ones are compared by cosine
	Score     scoring.Score
	Engine    *kernel.Engine
	BatchSize int            // rows encoded at a time, at least 1
	Workers   int            // goroutines that read rows; 0: 1
	Group     parallel.Group // processes that encode together, see Encoding; nil: this one alone
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// migrationNeighbours is how many neighbours of an item count.
const migrationNeighbours = 10

// MigrationScores are shares, in percent, of the ten nearest items by the new model that are found.
type MigrationScores struct {
	Mapped   float64 // by queries of the new model among old rows, both mapped
	Old      float64 // by queries of the old model among old rows: how far the models agree
	Unmapped float64 // by queries of the new model among old rows as they are; -1 where their widths differ
	Chance   float64
	Items    int
}

// Map names the scores for logs.
func (s MigrationScores) Map() map[string]float64 {
	m := map[string]float64{"mapped_r10": s.Mapped, "old_r10": s.Old}
	if s.Unmapped >= 0 {
		m["unmapped_r10"] = s.Unmapped
	}
	return m
}

// Table formats the scores for people.
func (s MigrationScores) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "recall@%d of the new model's neighbours  %%\n", migrationNeighbours)
	row := func(what string, v float64) { fmt.Fprintf(&b, "%-38s  %5.1f\n", what, v) }
	row("new queries, new index", 100)
	row("new queries, old index, mapped", s.Mapped)
	row("old queries, old index", s.Old)
	if s.Unmapped >= 0 {
		row("new queries, old index, not mapped", s.Unmapped)
	}
	row("chance", s.Chance)
	return b.String()
}

// Run encodes both sides and compares neighbours. It ends early with the error of ctx.
func (t Migration) Run(ctx context.Context) (MigrationScores, error) {
	const k = migrationNeighbours
	n := t.Images.Len()
	s := MigrationScores{Items: n, Unmapped: -1}
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
	score, err := queryScorer(t.Engine, t.Score, rows, n)
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
func (t Migration) rows(ctx context.Context, m Encoder, g data.Gallery, phase string) (stored, mapped []float32,
	err error) {
	e := Encoding{BatchSize: t.BatchSize, Workers: t.Workers, Group: t.Group, Progress: t.Progress, States: true}
	err = e.Run(ctx, m, g, phase, func(x Encoded) error {
		stored, mapped = append(stored, x.States...), append(mapped, x.Features...)
		return nil
	})
	return stored, mapped, err
}
