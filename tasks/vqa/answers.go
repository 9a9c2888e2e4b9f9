package vqa

import (
	"context"
	"maps"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Answered compares the answers of a model to questions with those of people, by the official accuracy of VQA
// (eval.VQAAccuracy).
type Answered struct {
	// Answer returns an answer to each of the n rows of b. It ends early with the error of ctx.
	Answer     func(ctx context.Context, b *batch.Batch) ([]string, error)
	Columns    []batch.Column // that Answer reads
	Candidates []string       // that the model chooses from; nil: it writes freely
	Samples    data.Examples
	Rows       data.Gallery // the samples as rows
	tasks.Encoding
}

// Run asks the model every question. It ends early with the error of ctx.
func (t Answered) Run(ctx context.Context) (Scores, error) {
	s := Scores{Samples: t.Samples, Questions: t.Samples.Len(), Candidates: len(t.Candidates)}
	err := t.Batches(ctx, t.Columns, t.Rows, "answering questions", func(b *batch.Batch, k int) error {
		answers, err := t.Answer(ctx, b)
		if err == nil {
			s.Answers = append(s.Answers, answers[:k]...)
		}
		return err
	})
	if err != nil {
		return s, err
	}
	t.score(&s)
	return s, nil
}

// score compares the answers with those of people.
func (t Answered) score(s *Scores) {
	candidates := newCandidates(t.Candidates)
	all := map[string]*answersOfKind{"": newAnswersOfKind()}
	var reachable, chance float64
	for i, answer := range s.Answers {
		e := t.Samples.Example(i)
		if len(e.Answers) == 0 {
			s.Unknown++
			s.Right = append(s.Right, -1)
			continue
		}
		given := eval.Annotators(e.Answers)
		right := eval.VQAAccuracy(answer, given)
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
			s.Kinds = append(s.Kinds, tasks.KindScore{Kind: kind, Examples: k.count,
				Accuracy: 100 * k.right / float64(k.count)})
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
