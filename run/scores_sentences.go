package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// sentences evaluates the text tower on the tasks of eval.sentences, whatever the split.
func (e Evaluation) sentences(ctx context.Context) (Scores, error) {
	c := e.Config
	if err := e.noWords(); err != nil {
		return nil, err
	}
	list, err := e.Set.files().openSentences(c)
	if err != nil {
		return nil, err
	}
	s := c.Eval.Sentences
	t := tasks.Sentences{
		Encoder: e.sentenceEncoder(),
		Rules:   s.Rules, Isotropy: s.Isotropy, Picture: picturePairs, Classifier: e.classifier(0),
	}
	m := sentencepairs.Measure{Tokenizer: e.Tokenizer, Clean: c.Data.Clean, MaxWords: c.Data.MaxWords, Tokens: c.Data.Tokens}
	out := Sentences{Rules: s.Rules}
	for _, x := range list {
		t.Tasks = append(t.Tasks, tasks.PairTask{Test: x.Test, Train: x.Train, Split: x.Split, Files: x.String()})
		out.Notes = append(out.Notes, notesOf(x.Test, m)...)
	}
	out.SentenceScores, err = t.Run(ctx)
	return out, err
}

// sentenceEncoder makes vectors of sentences as eval.sentences.feature says.
func (e Evaluation) sentenceEncoder() tasks.SentenceEncoder {
	c := e.Config
	return tasks.SentenceEncoder{
		Model: e.Model.Text(), Feature: c.Eval.Sentences.Feature,
		Gallery: func(list []string) data.Gallery {
			return sentenceTexts{listedTexts{list, cleaner(c), textColumns(c, e.Tokenizer)}}
		},
		Encoding: e.encoding(),
	}
}

// picturePairs is the number of pairs that are drawn.
const picturePairs = 250

// notesOf says what was left out of the pairs of a task, and how many sentences the model does not read whole.
func notesOf(set *sentencepairs.Set, m sentencepairs.Measure) (list []string) {
	say := func(format string, args ...any) { list = append(list, set.Task.Name+": "+fmt.Sprintf(format, args...)) }
	if text := set.Counts.String(); text != "" {
		say("%s", text)
	}
	if n := set.Counts.Ignored; n != nil {
		say("scores without sentences: %s", strings.Join(n, ", "))
	}
	all, long, blank := set.Distinct(), 0, 0
	for _, x := range all {
		n, _, cut := m.Length(x)
		if cut {
			long++
		}
		if n == 0 {
			blank++
		}
	}
	if long > 0 {
		say("the end of %s of %s sentences is cut (data.max_words, data.tokens)", words.Thousands(long), words.Thousands(len(all)))
	}
	if blank > 0 {
		say("nothing is left of %s by data.clean", words.Count(blank, "sentence"))
	}
	return list
}

// sentenceTexts are listedTexts of which nothing may be left: what stands around a text is then all there is.
type sentenceTexts struct{ listedTexts }

// Fill implements data.Gallery.
func (g sentenceTexts) Fill(i int, row batch.Row) error {
	g.columns.Fill(g.clean(g.texts[i]), row)
	return nil
}

// Sentences is the outcome of tasks of sentence pairs.
type Sentences struct {
	tasks.SentenceScores
	Rules []string // in the order of eval.sentences.rules
	Notes []string // what was left out
}

// Task implements Scores.
func (Sentences) Task() string { return TaskSentences }

// scored are the tasks with scores.
func (s Sentences) scored() (list []tasks.PairScores) {
	return slices.DeleteFunc(slices.Clone(s.Tasks), func(t tasks.PairScores) bool { return t.STS == nil })
}

// Metric is the first number of the first task: Spearman's correlation, or the accuracy by the first rule.
func (s Sentences) Metric() checkpoint.Metric {
	t := s.Tasks[0]
	if t.STS != nil {
		return checkpoint.Metric{Name: logPrefix(s.Task()) + "sts/" + t.Task + "/spearman", Value: 100 * t.STS.All.Spearman}
	}
	for _, rule := range s.Rules {
		if v, ok := t.Rules[rule]; ok {
			return checkpoint.Metric{Name: logPrefix(s.Task()) + "pairs/" + t.Task + "/" + rule, Value: v}
		}
	}
	_, v := t.Majority()
	return checkpoint.Metric{Name: logPrefix(s.Task()) + "pairs/" + t.Task + "/majority", Value: v}
}

// Values implements Scores: correlations and accuracies in percent.
func (s Sentences) Values() map[string]float64 {
	m := map[string]float64{}
	correlation := func(prefix string, c eval.Correlation) {
		m[prefix+"spearman"], m[prefix+"pearson"] = 100*c.Spearman, 100*c.Pearson
	}
	mean := 0.0
	scored := s.scored()
	for _, t := range s.Tasks {
		switch {
		case t.STS != nil:
			prefix := "sts/" + t.Task + "/"
			correlation(prefix, t.STS.All)
			mean += t.STS.All.Spearman / float64(len(scored))
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
		m["sts/mean/spearman"] = 100 * mean
	}
	return m
}

// Line implements Scores.
func (s Sentences) Line() string {
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
	config.SentenceClass: "class tokens before the head", config.SentenceMean: "mean of the tokens", config.SentenceHead: "feature of the shared space",
}

// Size implements Scores.
func (s Sentences) Size() string {
	n := 0
	for _, t := range s.Tasks {
		n += t.Pairs
	}
	return fmt.Sprintf("%s of sentence pairs, %s pairs, by the %s (%d numbers)", words.Count(len(s.Tasks), "task"), words.Thousands(n), featureNames[s.Feature], s.Width)
}

// JSON implements Scores.
func (s Sentences) JSON(_, path string) any {
	return sentencesJSON{Task: s.Task(), Path: path, Feature: s.Feature, Width: s.Width, Tasks: s.Tasks, Values: s.Values(), Notes: s.Notes}
}

// sentencesJSON is the JSON form of Sentences.
type sentencesJSON struct {
	Task    string             `json:"task"`
	Path    string             `json:"path"`
	Feature string             `json:"feature"`
	Width   int                `json:"width"`
	Tasks   []tasks.PairScores `json:"tasks"`
	Values  map[string]float64 `json:"values"` // as metrics.jsonl names them behind "eval/"
	Notes   []string           `json:"notes,omitempty"`
}
