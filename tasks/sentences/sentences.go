package sentences

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks/probe"
)

// PairTask is a task of sentence pairs to evaluate on.
type PairTask struct {
	Test  *sentencepairs.Set
	Train *sentencepairs.Set // nil: none; rules that are fitted to one are left out
	Split string             // of Test: val or test, empty where files are named
	Files string             // of Test, for people
}

// Tasks are those of an evaluation in their order.
type Tasks []PairTask

// Entries implements data.Listed: those of the tasks, one behind the other.
func (t Tasks) Entries() data.Entries {
	var list []data.Entries
	for _, x := range t {
		list = append(list, x.Test.Entries())
	}
	return data.JoinEntries(list...)
}

// Sentences evaluates the vectors of sentences on tasks of pairs, without fine-tuning. Pairs with scores are ranked by
// the cosine of their vectors (Conneau and Kiela 2018, section 3). Classes are told by rules, beside what constant
// answers give: what "evaluation without fine-tuning" means in ViPMM, section 5, is not stated there, and thresholds
// that are not fitted tell little more than a constant where all cosines are large.
type Sentences struct {
	Encoder  SentenceEncoder
	Tasks    Tasks
	Rules    []string // of FixedRule, TunedRule, KMeansRule and ProbeRule
	Isotropy int      // sentences of each task whose isotropy is measured; 0: none
	Pictured int      // pairs of the first task that are kept for a picture; 0: none
	probe.Classifier
}

// PairScores is the outcome of a task of sentence pairs.
type PairScores struct {
	Task  string `json:"task"`
	Split string `json:"split,omitempty"`
	Files string `json:"files"`
	Pairs int    `json:"pairs"`
	Train int    `json:"train,omitempty"`

	STS   *eval.STS         `json:"sts,omitempty"`   // of a task with scores
	Words *eval.Correlation `json:"words,omitempty"` // of all its pairs, by TF-IDF of their words instead of the encoder

	// Of a task with classes, in percent of the pairs.
	Classes    []string           `json:"classes,omitempty"`
	Rules      map[string]float64 `json:"rules,omitempty"`      // by the name of the rule
	WordRules  map[string]float64 `json:"word_rules,omitempty"` // the same by TF-IDF; of ProbeRule none
	Thresholds []float64          `json:"thresholds,omitempty"` // of TunedRule
	Constant   []float64          `json:"constant,omitempty"`   // of the answer that is always one class, by class
	Nearest    int                `json:"nearest"`              // class of similar pairs
	Skipped    string             `json:"skipped,omitempty"`    // why rules were left out

	Isotropy *eval.Isotropy `json:"isotropy,omitempty"`
}

// Majority is the class that is commonest, and the share of pairs of it in percent.
func (s PairScores) Majority() (class string, share float64) {
	for k, v := range s.Constant {
		if v > share {
			class, share = s.Classes[k], v
		}
	}
	return class, share
}

// Picture is some pairs of a task with their vectors.
type Picture struct {
	Task    string
	Pairs   []sentencepairs.Pair
	First   []float32 // (n, Width)
	Second  []float32 // (n, Width)
	Width   int
	Cosines []float64 // of all pairs that were evaluated
	Labels  []int32   // of the same; data.UnknownLabel of scores
	Scores  []float64 // of the same
	Spec    sentencepairs.Task
}

// Run encodes the sentences of each task and scores its pairs. It ends early with the error of ctx.
func (s Sentences) Run(ctx context.Context) (Scores, error) {
	out := Scores{Feature: s.Encoder.Feature, Rules: s.Rules}
	for k, t := range s.Tasks {
		drawn := k == 0 && s.Pictured > 0
		task, picture, err := s.task(ctx, t, drawn)
		if err != nil {
			return out, fmt.Errorf("tasks: %s: %w", t.Test.Task.Name, err)
		}
		out.Tasks, out.Width = append(out.Tasks, task), picture.Width
		if drawn {
			out.Picture = picture
		}
	}
	return out, nil
}

// task evaluates one task; the picture of one that is not drawn has no pairs.
func (s Sentences) task(ctx context.Context, t PairTask, drawn bool) (PairScores, *Picture, error) {
	spec, pairs := t.Test.Task, t.Test.Pairs
	r := PairScores{Task: spec.Name, Split: t.Split, Files: t.Files, Pairs: len(pairs)}
	all := sentencesOf(pairs)
	if s.fitted() && t.Train != nil {
		all = append(all, sentencesOf(t.Train.Pairs)...)
	}
	v, err := s.Encoder.Encode(ctx, all, "encoding sentences of "+spec.Name)
	if err != nil {
		return r, nil, err
	}
	p := &Picture{Task: spec.Name, Width: v.Width, Cosines: cosines(v, pairs), Spec: spec}
	for _, x := range pairs {
		p.Labels, p.Scores = append(p.Labels, x.Label), append(p.Scores, x.Score)
	}
	if spec.Scored() {
		var names []string
		var ends []int
		for _, part := range t.Test.Parts {
			names, ends = append(names, part.Name), append(ends, part.Last)
		}
		sts := eval.MeasureSTS(p.Cosines, p.Scores, names, ends)
		words := eval.Correlate(byWords(pairs, sentencesOf(pairs)), p.Scores)
		r.STS, r.Words = &sts, &words
	} else if err := s.classes(ctx, &r, t, v, p); err != nil {
		return r, nil, err
	}
	if s.Isotropy > 0 {
		i, err := isotropyOf(v, spec, pairs, s.Isotropy)
		if err != nil {
			return r, nil, err
		}
		r.Isotropy = i
	}
	if drawn {
		for _, x := range thinned(pairs, s.Pictured) {
			p.Pairs = append(p.Pairs, x)
			p.First, p.Second = append(p.First, v.Row(x.A)...), append(p.Second, v.Row(x.B)...)
		}
	}
	return r, p, nil
}
