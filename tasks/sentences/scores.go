package sentences

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are the outcomes of tasks in their order.
type Scores struct {
	Feature string // what stood for a sentence
	Width   int    // of it
	Tasks   []PairScores
	Picture *Picture // nil without one
	Rules   []string // in the order of eval.sentences.rules
	Notes   []string // what was left out
}

// Task implements tasks.Scores.
func (Scores) Task() string { return Name }

// scored are the tasks with scores.
func (s Scores) scored() (list []PairScores) {
	return slices.DeleteFunc(slices.Clone(s.Tasks), func(t PairScores) bool { return t.STS == nil })
}

// Metric is the first number of the first task: Spearman's correlation, or the accuracy by the first rule.
func (s Scores) Metric() checkpoint.Metric {
	t := s.Tasks[0]
	if t.STS != nil {
		return checkpoint.Metric{Name: "eval/" + "sts/" + t.Task + "/spearman", Value: 100 * t.STS.All.Spearman}
	}
	for _, rule := range s.Rules {
		if v, ok := t.Rules[rule]; ok {
			return checkpoint.Metric{Name: "eval/" + "pairs/" + t.Task + "/" + rule, Value: v}
		}
	}
	_, v := t.Majority()
	return checkpoint.Metric{Name: "eval/" + "pairs/" + t.Task + "/majority", Value: v}
}

// Values implements tasks.Scores: correlations and accuracies in percent.
func (s Scores) Values() map[string]float64 {
	m := map[string]float64{}
	correlation := func(prefix string, c eval.Correlation) {
		m[prefix+"spearman"], m[prefix+"pearson"] = 100*c.Spearman, 100*c.Pearson
	}
	mean, words := 0.0, 0.0
	scored := s.scored()
	for _, t := range s.Tasks {
		switch {
		case t.STS != nil:
			prefix := "sts/" + t.Task + "/"
			correlation(prefix, t.STS.All)
			mean += t.STS.All.Spearman / float64(len(scored))
			if t.Words != nil {
				m[prefix+"tfidf_spearman"] = 100 * t.Words.Spearman
				words += t.Words.Spearman / float64(len(scored))
			}
			if len(t.STS.Parts) > 1 {
				correlation(prefix+"mean_", t.STS.Mean)
				correlation(prefix+"weighted_", t.STS.Weighted)
				for _, p := range t.STS.Parts {
					correlation(prefix+p.Name+"/", p.Correlation)
				}
			}
		default:
			prefix := "pairs/" + t.Task + "/"
			for rule, v := range t.Rules {
				m[prefix+rule] = v
			}
			for rule, v := range t.WordRules {
				m[prefix+"tfidf_"+rule] = v
			}
			_, m[prefix+"majority"] = t.Majority()
			m[prefix+"constant"] = t.Constant[t.Nearest]
		}
		if t.Isotropy != nil {
			for _, v := range t.Isotropy.Values() {
				m["isotropy/"+t.Task+"/"+v.Name] = v.Value
			}
		}
	}
	if len(scored) > 1 {
		m["sts/mean/spearman"], m["sts/mean/tfidf_spearman"] = 100*mean, 100*words
	}
	return m
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	var list []string
	for _, t := range s.Tasks {
		if t.STS != nil {
			list = append(list, fmt.Sprintf("%s Spearman %.2f", t.Task, 100*t.STS.All.Spearman))
			continue
		}
		text := t.Task
		for _, rule := range s.Rules {
			if v, ok := t.Rules[rule]; ok {
				text += fmt.Sprintf(" %s %.2f", rule, v)
			}
		}
		_, v := t.Majority()
		list = append(list, text+fmt.Sprintf(" (majority %.2f)", v))
	}
	return strings.Join(list, ", ")
}

// featureNames say what stood for a sentence.
var featureNames = map[string]string{
	ClassFeature: "class tokens before the head", MeanFeature: "mean of the tokens",
	HeadFeature: "feature of the shared space",
}

// Size implements tasks.Scores.
func (s Scores) Size() string {
	n := 0
	for _, t := range s.Tasks {
		n += t.Pairs
	}
	return fmt.Sprintf("%s of sentence pairs, %s pairs, by the %s (%d numbers)", words.Count(len(s.Tasks), "task"),
		words.Thousands(n), featureNames[s.Feature], s.Width)
}

// JSON implements tasks.Scores.
func (s Scores) JSON(_, path string) any {
	return struct {
		Task    string             `json:"task"`
		Path    string             `json:"path"`
		Feature string             `json:"feature"`
		Width   int                `json:"width"`
		Tasks   []PairScores       `json:"tasks"`
		Values  map[string]float64 `json:"values"` // as metrics.jsonl names them behind "eval/"
		Notes   []string           `json:"notes,omitempty"`
	}{Name, path, s.Feature, s.Width, s.Tasks, s.Values(), s.Notes}
}
