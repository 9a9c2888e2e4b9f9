package run

import (
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// migration measures what an old index gives to queries of a new model.
func (e Evaluation) migration(ctx context.Context) (Scores, error) {
	if err := e.needsStored(); err != nil {
		return nil, err
	}
	texts, err := e.Set.Texts(nil)
	if err != nil {
		return nil, err
	}
	score, err := e.Model.PairScore()
	if err != nil {
		return nil, err
	}
	s, err := tasks.Migration{
		Image: e.Model.Image(), Text: e.Model.Text(), Images: e.Set.Images(), Texts: texts, TextImage: e.Set.TextImage, Score: score, Engine: e.Engine,
		BatchSize: e.Config.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return Migration{s}, err
}

// Migration is what an old index gives to queries of a new model.
type Migration struct{ tasks.MigrationScores }

// Task implements Scores.
func (m Migration) Task() string { return TaskMigration }

// Metric is the recall of the mapped index.
func (m Migration) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskMigration) + "mapped_r10", Value: m.Mapped}
}

// Values implements Scores.
func (m Migration) Values() map[string]float64 { return m.Map() }

// Size implements Scores.
func (m Migration) Size() string { return words.Count(m.Items, "item") }

// Line implements Scores.
func (m Migration) Line() string {
	return fmt.Sprintf("recall@10 of the new model's neighbours: mapped %.1f, old model %.1f, chance %.1f", m.Mapped, m.Old, m.Chance)
}

// JSON implements Scores.
func (m Migration) JSON(split, path string) any {
	var unmapped *float64
	if m.Unmapped >= 0 {
		unmapped = &m.Unmapped
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
	}{TaskMigration, split, path, m.Items, m.Mapped, m.Old, unmapped, m.Chance}
}
