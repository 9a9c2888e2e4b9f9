package tasks

import (
	"context"
	"maps"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
)

// Answered compares the answers of a model to questions with those of people, by the official accuracy of VQA
// (eval.VQAAccuracy).
type Answered struct {
	// Answer returns an answer to each of the n rows of b. It ends early with the error of ctx.
	Answer     func(ctx context.Context, b *batch.Batch) ([]string, error)
	Columns    []batch.Column // that Answer reads
	Candidates []string       // that the model chooses from; nil: it writes freely
	Examples   data.Examples
	Gallery    data.Gallery // the examples as rows
	Encoding
}

// AnsweredScores are the outcome. Accuracies are in percent.
type AnsweredScores struct {
	Questions int
	Unknown   int // without an answer by people, which the rest leaves out
	Outside   int // of which the heaviest answer is not a candidate
	Accuracy  float64
	Reachable float64     // of the best candidate for each question; 100 for a model that writes
	Majority  float64     // of the answer that is the best one for all questions
	ByKind    float64     // of the answers that are the best ones for all questions of a kind
	Chance    float64     // of a candidate that is drawn evenly; 0 for a model that writes
	Kinds     []KindScore // in the order of their names; nil where questions are of no kind
	KindBest  []float64   // of Kinds: of the answer that is the best one for all questions of the kind
	Said      []string    // answer to each question
	Right     []float64   // accuracy of each, from 0 to 1; -1: unknown
}

// Run asks the model every question. It ends early with the error of ctx.
func (t Answered) Run(ctx context.Context) (AnsweredScores, error) {
	s := AnsweredScores{Questions: t.Examples.Len()}
	err := t.batches(ctx, t.Columns, t.Gallery, "answering questions", func(b *batch.Batch, k int) error {
		said, err := t.Answer(ctx, b)
		if err == nil {
			s.Said = append(s.Said, said[:k]...)
		}
		return err
	})
	if err != nil {
		return s, err
	}
	t.score(&s)
	return s, nil
}

// score compares what was said.
func (t Answered) score(s *AnsweredScores) {
	candidates := newCandidates(t.Candidates)
	all := map[string]*answersOfKind{"": newAnswersOfKind()}
	var reachable, chance float64
	for i, said := range s.Said {
		e := t.Examples.Example(i)
		if len(e.Answers) == 0 {
			s.Unknown++
			s.Right = append(s.Right, -1)
			continue
		}
		given := eval.Annotators(e.Answers)
		right := eval.VQAAccuracy(said, given)
		s.Right = append(s.Right, right)
		if all[e.Kind] == nil {
			all[e.Kind] = newAnswersOfKind()
		}
		best, seen := 0., map[string]bool{}
		for _, a := range e.Answers {
			as := candidates.compared(a.Text, e)
			if seen[as] { // two ways to write one answer
				continue
			}
			seen[as] = true
			accuracy := eval.VQAAccuracy(a.Text, given)
			all[e.Kind].always(e)[as] += accuracy
			if e.Kind != "" {
				all[""].always(e)[as] += accuracy
			}
			if n := candidates.has(as, e); n > 0 {
				best, chance = max(best, accuracy), chance+accuracy*float64(n)
			}
		}
		all[e.Kind].add(right)
		if e.Kind != "" {
			all[""].add(right)
		}
		if reachable += best; t.Candidates != nil && candidates.has(candidates.compared(e.Answers[0].Text, e), e) == 0 {
			s.Outside++
		}
	}
	n := float64(max(1, all[""].count))
	s.Accuracy, s.Majority = 100*all[""].right/n, 100*all[""].best()/n
	s.Reachable = 100
	if t.Candidates != nil {
		s.Reachable, s.Chance = 100*reachable/n, 100*chance/n/float64(len(t.Candidates))
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if k := all[kind]; kind != "" {
			s.Kinds = append(s.Kinds, KindScore{kind, k.count, 100 * k.right / float64(k.count)})
			s.KindBest = append(s.KindBest, 100*k.best()/float64(k.count))
			s.ByKind += 100 * k.best() / n
		}
	}
	if s.Kinds == nil {
		s.ByKind = s.Majority
	}
}

// answersOfKind sums the accuracies of the questions of a kind, or of all.
type answersOfKind struct {
	count int
	right float64
	// Of each answer, were it given to all: to questions where people agree, as it is written, and to others, as it is
	// compared there.
	plain, normalized map[string]float64
}

func newAnswersOfKind() *answersOfKind {
	return &answersOfKind{plain: map[string]float64{}, normalized: map[string]float64{}}
}

// always are the sums of answers to questions such as e.
func (k *answersOfKind) always(e data.Example) map[string]float64 {
	if len(e.Answers) > 1 {
		return k.normalized
	}
	return k.plain
}

func (k *answersOfKind) add(right float64) { k.count, k.right = k.count+1, k.right+right }

// best is the sum for the answer that is the best one for all.
func (k *answersOfKind) best() (best float64) {
	for _, sum := range k.normalized {
		best = max(best, sum)
	}
	for answer, sum := range k.plain {
		best = max(best, sum+k.normalized[eval.NormalizeVQA(answer)])
	}
	return best
}

// candidateSet counts candidates as they are and as they are compared where people disagree.
type candidateSet struct{ plain, normalized map[string]int }

func newCandidates(list []string) candidateSet {
	s := candidateSet{map[string]int{}, map[string]int{}}
	for _, c := range list {
		s.plain[c]++
		s.normalized[eval.NormalizeVQA(c)]++
	}
	return s
}

// compared is an answer to e as it is compared with others.
func (s candidateSet) compared(answer string, e data.Example) string {
	if len(e.Answers) > 1 {
		return eval.NormalizeVQA(answer)
	}
	return answer
}

// has is the number of candidates that count as an answer to e, which is written as compared has it.
func (s candidateSet) has(answer string, e data.Example) int {
	if len(e.Answers) > 1 {
		return s.normalized[answer]
	}
	return s.plain[answer]
}
