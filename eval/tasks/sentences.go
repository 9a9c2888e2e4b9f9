package tasks

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/eval"
)

// Rules by which a class of a pair is told.
const (
	FixedRule  = "fixed"  // thresholds of the cosine that part 0 to 1 evenly
	TunedRule  = "tuned"  // those that are best on training pairs
	KMeansRule = "kmeans" // clusters of the cosines of the pairs themselves, each a class, matched as it fits the labels best
	ProbeRule  = "probe"  // a linear classifier on |u-v| and u*v of training pairs
)

// PairTask is a task of sentence pairs to evaluate on.
type PairTask struct {
	Test  *sentencepairs.Set
	Train *sentencepairs.Set // nil: none; rules that are fitted to one are left out
	Split string             // of Test, for people
	Files string             // likewise
}

// Sentences evaluates the vectors of sentences on tasks of pairs, without fine-tuning. Pairs with scores are ranked by the
// cosine of their vectors (Conneau and Kiela 2018, section 3). Classes are told by rules, beside what constant answers give: what
// "evaluation without fine-tuning" means in ViPMM, section 5, is not stated there, and thresholds that are not fitted tell
// little more than a constant where all cosines are large.
type Sentences struct {
	Encoder  SentenceEncoder
	Tasks    []PairTask
	Rules    []string // of FixedRule, TunedRule, KMeansRule and ProbeRule
	Isotropy int      // sentences of each task whose isotropy is measured; 0: none
	Picture  int      // pairs of the first task that are kept for a picture; 0: none
	Classifier
}

// PairScores is the outcome of a task of sentence pairs.
type PairScores struct {
	Task  string `json:"task"`
	Split string `json:"split,omitempty"`
	Files string `json:"files"`
	Pairs int    `json:"pairs"`
	Train int    `json:"train,omitempty"`

	STS *eval.STS `json:"sts,omitempty"` // of a task with scores

	// Of a task with classes, in percent of the pairs.
	Classes    []string           `json:"classes,omitempty"`
	Rules      map[string]float64 `json:"rules,omitempty"`      // by the name of the rule
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

// SentenceScores are the outcomes of tasks in their order.
type SentenceScores struct {
	Feature string // what stood for a sentence
	Width   int    // of it
	Tasks   []PairScores
	Picture *SentencePicture // nil without one
}

// SentencePicture is some pairs of a task with their vectors.
type SentencePicture struct {
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
func (s Sentences) Run(ctx context.Context) (SentenceScores, error) {
	out := SentenceScores{Feature: s.Encoder.Feature}
	for k, t := range s.Tasks {
		task, picture, err := s.task(ctx, t, k == 0)
		if err != nil {
			return out, fmt.Errorf("tasks: %s: %w", t.Test.Task.Name, err)
		}
		out.Tasks, out.Width = append(out.Tasks, task), picture.Width
		if k == 0 && s.Picture > 0 {
			out.Picture = picture
		}
	}
	return out, nil
}

// task evaluates one task; the picture of another than the first has no pairs.
func (s Sentences) task(ctx context.Context, t PairTask, drawn bool) (PairScores, *SentencePicture, error) {
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
	p := &SentencePicture{Task: spec.Name, Width: v.Width, Cosines: cosines(v, pairs), Spec: spec}
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
		r.STS = &sts
	} else if err := s.classes(ctx, &r, t, v, pairs, p); err != nil {
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
		for _, x := range thinned(pairs, s.Picture) {
			p.Pairs = append(p.Pairs, x)
			p.First, p.Second = append(p.First, v.Row(x.A)...), append(p.Second, v.Row(x.B)...)
		}
	}
	return r, p, nil
}

// classes tells the classes of pairs by every rule.
func (s Sentences) classes(ctx context.Context, r *PairScores, t PairTask, v Vectors, pairs []sentencepairs.Pair, p *SentencePicture) error {
	spec := t.Test.Task
	k := len(spec.Classes)
	r.Classes, r.Rules, r.Constant, r.Nearest = spec.Classes, map[string]float64{}, make([]float64, k), int(spec.Near[0])
	share := func(told func(i int) int32) float64 {
		right := 0
		for i, l := range p.Labels {
			if told(i) == l {
				right++
			}
		}
		return 100 * float64(right) / float64(len(pairs))
	}
	for l := range r.Constant {
		r.Constant[l] = share(func(int) int32 { return int32(l) })
	}
	if slices.Contains(s.Rules, FixedRule) {
		cut := eval.FixedThresholds(k)
		r.Rules[FixedRule] = share(func(i int) int32 { return spec.Near[cut.Place(p.Cosines[i])] })
	}
	if slices.Contains(s.Rules, KMeansRule) {
		cut := eval.ClusterThresholds(p.Cosines, k)
		clusters := make([]int, len(pairs))
		for i, c := range p.Cosines {
			clusters[i] = cut.Place(c)
		}
		class := eval.MatchClusters(clusters, p.Labels, k)
		r.Rules[KMeansRule] = share(func(i int) int32 { return class[clusters[i]] })
	}
	if !s.fitted() {
		return nil
	}
	if t.Train == nil {
		r.Skipped = "there are no training pairs for the rules that are fitted"
		return nil
	}
	train := t.Train.Pairs
	r.Train = len(train)
	labels := make([]int32, len(train))
	for i, x := range train {
		labels[i] = x.Label
	}
	if slices.Contains(s.Rules, TunedRule) {
		cut := eval.TuneThresholds(cosines(v, train), labels, spec.Near)
		r.Thresholds = cut
		r.Rules[TunedRule] = share(func(i int) int32 { return spec.Near[cut.Place(p.Cosines[i])] })
	}
	if slices.Contains(s.Rules, ProbeRule) {
		x, err := s.Classifier.classify(ctx, labelled{related(v, train), labels}, labelled{related(v, pairs), p.Labels}, spec.Classes, s.Encoder.Progress)
		if err != nil {
			return err
		}
		r.Rules[ProbeRule] = x.Top1
	}
	return nil
}

// fitted says whether a rule is fitted to training pairs.
func (s Sentences) fitted() bool {
	return slices.Contains(s.Rules, TunedRule) || slices.Contains(s.Rules, ProbeRule)
}

// thinned takes so many pairs at even distances.
func thinned(pairs []sentencepairs.Pair, most int) []sentencepairs.Pair {
	some := sentencepairs.Set{Pairs: pairs}
	some.Thin(most)
	return some.Pairs
}

// sentencesOf lists both sentences of pairs.
func sentencesOf(pairs []sentencepairs.Pair) []string {
	list := make([]string, 0, 2*len(pairs))
	for _, p := range pairs {
		list = append(list, p.A, p.B)
	}
	return list
}

// cosines are those of pairs, 0 where a vector has no direction.
func cosines(v Vectors, pairs []sentencepairs.Pair) []float64 {
	list := make([]float64, len(pairs))
	for i, p := range pairs {
		a, b := v.Row(p.A), v.Row(p.B)
		dot, aa, bb := 0.0, 0.0, 0.0
		for j := range a {
			x, y := float64(a[j]), float64(b[j])
			dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
		}
		if aa > 0 && bb > 0 {
			list[i] = dot / math.Sqrt(aa*bb) // which is 1 of a sentence with itself, so that such pairs tie
		}
	}
	return list
}

// related returns |u-v| and u*v of pairs: (n, 2 Width).
func related(v Vectors, pairs []sentencepairs.Pair) []float32 {
	var a, b []float32
	for _, p := range pairs {
		a, b = append(a, v.Row(p.A)...), append(b, v.Row(p.B)...)
	}
	return relate(a, b, len(pairs))
}

// isotropyOf measures so many of the sentences of pairs, and how near those are that mean the same: of the class of similar
// pairs, or with a score above that of Task.Alike.
func isotropyOf(v Vectors, spec sentencepairs.Task, pairs []sentencepairs.Pair, most int) (*eval.Isotropy, error) {
	at := map[string]int{}
	var x []float32
	add := func(sentence string) int {
		i, known := at[sentence]
		if !known {
			i = len(at)
			at[sentence] = i
			x = append(x, v.Row(sentence)...)
		}
		return i
	}
	var positives [][2]int
	for _, p := range thinned(pairs, max(1, most/2)) {
		a, b := add(p.A), add(p.B)
		alike := !spec.Scored() && p.Label == spec.Near[0] || spec.Scored() && p.Score > spec.Alike()
		if alike {
			positives = append(positives, [2]int{a, b})
		}
	}
	if len(at) < 2 {
		return nil, nil
	}
	s, err := eval.MeasureIsotropy(x, len(at), v.Width, positives)
	return &s, err
}
