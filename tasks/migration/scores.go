package migration

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are shares, in percent, of the ten nearest items by the new model that are found.
type Scores struct {
	Mapped   float64 // by queries of the new model among old rows, both mapped
	Old      float64 // by queries of the old model among old rows: how far the models agree
	Unmapped float64 // by queries of the new model among old rows as they are; -1 where their widths differ
	Chance   float64
	Items    int
}

// Task implements tasks.Scores.
func (s Scores) Task() string { return Name }

// Metric is the recall of the mapped index.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(Name, "mapped_r10"), Value: s.Mapped}
}

// Values implements tasks.Scores.
func (s Scores) Values() map[string]float64 {
	m := map[string]float64{"mapped_r10": s.Mapped, "old_r10": s.Old}
	if s.Unmapped >= 0 {
		m["unmapped_r10"] = s.Unmapped
	}
	return m
}

// Size implements tasks.Scores.
func (s Scores) Size() string { return words.Count(s.Items, "item") }

// Line implements tasks.Scores.
func (s Scores) Line() string {
	return fmt.Sprintf("recall@10 of the new model's neighbours: mapped %.1f, old model %.1f, chance %.1f", s.Mapped,
		s.Old, s.Chance)
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
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

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	var unmapped *float64
	if s.Unmapped >= 0 {
		unmapped = &s.Unmapped
	}
	return struct {
		Task     string   `json:"task"`
		Split    string   `json:"split"`
		Path     string   `json:"path"`
		Items    int      `json:"items"`
		Mapped   float64  `json:"mapped_r10"`
		Old      float64  `json:"old_r10"`
		Unmapped *float64 `json:"unmapped_r10,omitempty"` // where the widths are equal
		Chance   float64  `json:"chance_r10"`
	}{Name, split, path, s.Items, s.Mapped, s.Old, unmapped, s.Chance}
}
