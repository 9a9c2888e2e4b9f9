package retrieval

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/sanity"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// metric is the metric of checkpoints by a ranking, as metrics.jsonl names it; that
// of logs of earlier versions with an empty ranking.
func metric(ranking string) string {
	if ranking != "" {
		ranking += "/"
	}
	return tasks.Logged(Name, ranking+eval.RMeanName)
}

// Scores is what an evaluation found.
type Scores struct {
	Score  string        // how pairs were compared, such as "cosine"
	First  eval.Metrics  // by that score
	Rerank *eval.Metrics // nil without re-ranking
	Chance eval.Metrics  // of a random order, in galleries of the same size
	// Precision is that of the pair score, nil where every query has one right answer.
	Precision *eval.Precision
	// Leading are the metrics of the pair score by leading channels alone.
	Leading []Leading
	Images  int
	Texts   int
	// The mean of recalls of the last ranking where equal scores count against the model, and over all orders of them,
	// whatever MeanTies.
	WorstRMean, TiedRMean float64
	// MeanCosine is that of two images and of two texts, 0 where no features are compared.
	MeanCosine [2]float64
	KeepBy     string // train.keep_best_by
	// Queries are the ranks of all queries by the pair score, nil where the gallery was cut into folds.
	Queries *eval.Queries
}

// Leading is what the first Dim channels of features find, see objectives.Matryoshka.
type Leading struct {
	Dim     int          `json:"dim"`
	Metrics eval.Metrics `json:"metrics"`
}

// Final returns the metrics of the last ranking: the re-ranked ones if there are any.
func (s Scores) Final() eval.Metrics {
	if s.Rerank != nil {
		return *s.Rerank
	}
	return s.First
}

// RerankedName is the column of the re-ranked metrics for people.
const RerankedName = "re-ranked"

// Columns returns the metrics of every ranking with its name for people.
func (s Scores) Columns() []eval.Result {
	results := []eval.Result{{Name: s.Score, Metrics: s.First}}
	if s.Rerank != nil {
		results = append(results, eval.Result{Name: RerankedName, Metrics: *s.Rerank})
	}
	for _, l := range s.Leading {
		results = append(results, eval.Result{Name: fmt.Sprintf("first %d", l.Dim), Metrics: l.Metrics})
	}
	return results
}

// Task implements tasks.Scores.
func (s Scores) Task() string { return Name }

// kept returns the ranking that compares checkpoints, by its name in the log, with its name
// for people and its metrics.
func (s Scores) kept() (ranking, name string, m eval.Metrics) {
	better := s.Rerank != nil && s.Rerank.RMean() > s.First.RMean()
	if s.Rerank != nil && s.KeepBy != eval.First && (better || s.KeepBy == eval.Reranked) {
		return eval.Reranked, RerankedName, *s.Rerank
	}
	return eval.First, s.Score, s.First
}

// Metric is the mean of all recalls of the ranking that train.keep_best_by chooses.
func (s Scores) Metric() checkpoint.Metric {
	ranking, _, m := s.kept()
	return checkpoint.Metric{Name: metric(ranking), Value: m.RMean()}
}

// named says whether train.keep_best_by names a number of the evaluations, and no ranking.
func (s Scores) named() bool { return strings.HasPrefix(s.KeepBy, "eval/") }

// comparison says by what checkpoints are compared, where there is a choice: by a number, or by the mean of a ranking.
func (s Scores) comparison() (name string, number bool) {
	switch _, name, _ := s.kept(); {
	case s.named():
		return s.KeepBy, true
	case s.Rerank != nil:
		return name, false
	}
	return "", false
}

// Values implements tasks.Scores: every ranking below its name, and the last one without.
func (s Scores) Values() map[string]float64 {
	values := s.Final().Map()
	add := func(ranking string, list eval.Values) {
		for _, v := range list {
			values[ranking+"/"+v.Name] = v.Value
		}
	}
	add(eval.First, s.First.Values())
	if s.Rerank != nil {
		add(eval.Reranked, s.Rerank.Values())
	}
	for _, l := range s.Leading {
		add(fmt.Sprintf("first_%d", l.Dim), l.Metrics.Values())
	}
	add(eval.Random, s.Chance.Values())
	if s.Precision != nil {
		add(eval.First, s.Precision.Values())
	}
	return values
}

// Size implements tasks.Scores.
func (s Scores) Size() string { return fmt.Sprintf("%d images, %d texts", s.Images, s.Texts) }

// Line implements tasks.Scores.
func (s Scores) Line() string {
	var parts []string
	for _, c := range s.Columns() {
		m := c.Metrics
		parts = append(parts, fmt.Sprintf("%s R@1 %.1f / %.1f R@10 %.1f / %.1f mean %.1f", c.Name, m.I2T.R1, m.T2I.R1,
			m.I2T.R10, m.T2I.R10, m.RMean()))
	}
	if by, _ := s.comparison(); by != "" {
		parts = append(parts, "checkpoints compared by "+by)
	}
	return "image to text / text to image: " + strings.Join(parts, ", ")
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	text := eval.Table(s.Columns(), s.Chance)
	if p := s.Precision; p != nil {
		text += fmt.Sprintf("\n%-30s  %8s  %8s  %8s\n", "precision by "+s.Score, "P@5 %", "P@10 %", "chance")
		text += fmt.Sprintf("%-30s  %8.1f  %8.1f  %8.2f\n", "image to text", p.I2T.P5, p.I2T.P10, p.I2TChance)
		text += fmt.Sprintf("%-30s  %8.1f  %8.1f  %8.2f\n", "text to image", p.T2I.P5, p.T2I.P10, p.T2IChance)
	}
	switch by, number := s.comparison(); {
	case number:
		text += fmt.Sprintf("\nCheckpoints are compared by %s (train.keep_best_by).\n", by)
	case by != "":
		text += fmt.Sprintf("\nCheckpoints are compared by the mean of recalls of: %s (train.keep_best_by).\n", by)
	}
	return text + "\n" + s.verdict()
}

// verdict is the result in one sentence.
func (s Scores) verdict() string {
	m := s.Final()
	return fmt.Sprintf("%.1f %% of the texts find an image of theirs first, and %.1f %% of the images a text; "+
		"by chance %.2f %% and %.2f %%.\n", m.T2I.R1, m.I2T.R1, s.Chance.T2I.R1, s.Chance.I2T.R1)
}

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	x := struct {
		Task   string        `json:"task"`
		Split  string        `json:"split"`
		Path   string        `json:"path"`
		Images int           `json:"images"`
		Texts  int           `json:"texts"`
		Score  string        `json:"score"` // how pairs were compared
		First  eval.Metrics  `json:"first"` // by that score
		Rerank *eval.Metrics `json:"rerank,omitempty"`
		Chance eval.Metrics  `json:"chance"`

		Leading []Leading `json:"leading,omitempty"` // by the first channels of features

		// of the pair score, where queries have several right answers
		Precision eval.Values `json:"precision,omitempty"`
		Metric    string      `json:"metric"` // by which checkpoints are kept, as in metrics.jsonl
	}{Name, split, path, s.Images, s.Texts, s.Score, s.First, s.Rerank, s.Chance, s.Leading, nil, s.Metric().Name}
	if s.Precision != nil {
		x.Precision = s.Precision.Values()
	}
	if s.named() {
		x.Metric = s.KeepBy
	}
	return x
}

// Cautions implements tasks.Cautious. Captions of one image are near each other: they count as one answer.
func (s Scores) Cautions() []string {
	m, n := s.Final(), s.Images
	direction := func(what string, got, chance eval.Direction) string {
		return sanity.AtChance(what, sanity.Share{Name: "R@1", Value: got.R1, Chance: chance.R1, N: n},
			sanity.Share{Name: "R@5", Value: got.R5, Chance: chance.R5, N: n},
			sanity.Share{Name: "R@10", Value: got.R10, Chance: chance.R10, N: n})
	}
	return tasks.NotEmpty(direction("image to text", m.I2T, s.Chance.I2T),
		direction("text to image", m.T2I, s.Chance.T2I),
		sanity.Few(sanity.Share{Name: "R@1 image to text", Value: m.I2T.R1, N: n}, "images"),
		sanity.Ties(s.WorstRMean, s.TiedRMean), sanity.Collapsed("images", s.MeanCosine[0], s.Images),
		sanity.Collapsed("texts", s.MeanCosine[1], s.Texts))
}
