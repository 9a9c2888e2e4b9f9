package reid

import (
	"fmt"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/sanity"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are the outcome of a search by identities.
type Scores struct {
	eval.Identities
	Score    string // how rows were compared
	Captions bool   // captions searched for others of their image
}

// Task implements tasks.Scores.
func (s Scores) Task() string {
	if s.Captions {
		return SiblingsName
	}
	return Name
}

// Metric is the mean average precision.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(s.Task(), "map"), Value: s.MAP}
}

// Values implements tasks.Scores.
func (s Scores) Values() map[string]float64 { return tasks.Values(s.Identities.Values()) }

// Size implements tasks.Scores.
func (s Scores) Size() string {
	if s.Captions {
		return fmt.Sprintf("%d captions", s.Queries+s.Unmatched)
	}
	return fmt.Sprintf("%d queries, %d gallery images", s.Queries, s.Gallery)
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	text := fmt.Sprintf("mAP %.2f, R@1 %.2f, R@5 %.2f, mINP %.2f, chance mAP %.2f R@1 %.2f", s.MAP, s.R1, s.R5, s.MINP,
		s.ChanceMAP, s.ChanceR1)
	if s.Captions {
		return text
	}
	return s.Score + " " + text
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	text := fmt.Sprintf("%-10s", "")
	row := fmt.Sprintf("%-10s", s.Score)
	for _, v := range s.Identities.Values() {
		name := map[string]string{"map": "mAP", "minp": "mINP", "r1": "R@1", "r5": "R@5", "r10": "R@10",
			"r100": "R@100"}[v.Name]
		text, row = text+fmt.Sprintf("  %6s", name), row+fmt.Sprintf("  %6.2f", v.Value)
	}
	text += "\n" + row + fmt.Sprintf("\n%-10s  %6.2f  %6s  %6.2f\n", "chance", s.ChanceMAP, "", s.ChanceR1)
	if s.Unmatched > 0 {
		text += fmt.Sprintf("%d queries have no right answer in the gallery and are left out\n", s.Unmatched)
	}
	return text
}

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	gallery, score := &s.Gallery, s.Score
	if s.Captions {
		gallery, score = nil, ""
	}
	return struct {
		Task      string      `json:"task"`
		Split     string      `json:"split"`
		Path      string      `json:"path"`
		Queries   int         `json:"queries"`
		Unmatched int         `json:"unmatched,omitempty"` // queries without a right answer in the gallery, left out
		Gallery   *int        `json:"gallery,omitempty"`
		Score     string      `json:"score,omitempty"` // how images were compared
		Found     eval.Values `json:"found"`
		Chance    eval.Values `json:"chance"`
		Metric    string      `json:"metric"` // by which checkpoints are kept, as in metrics.jsonl
	}{s.Task(), split, path, s.Queries, s.Unmatched, gallery, score, s.Identities.Values(),
		eval.Values{{Name: "map", Value: s.ChanceMAP}, {Name: "r1", Value: s.ChanceR1}}, s.Metric().Name}
}

// Cautions implements tasks.Cautious.
func (s Scores) Cautions() []string {
	if s.Captions {
		return nil
	}
	x := sanity.Share{Name: "R@1", Value: s.R1, Chance: s.ChanceR1, N: s.Queries}
	return tasks.NotEmpty(sanity.AtChance("re-identification", x), sanity.Few(x, "queries"))
}
