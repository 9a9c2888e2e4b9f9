package tasks

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
)

// questionRows are the numbers of questions as rows of a batch.
type questionRows int

func (g questionRows) Len() int { return int(g) }
func (g questionRows) Columns() []data.Column {
	return []data.Column{{Name: batch.IDs, Type: batch.Int32}}
}
func (g questionRows) Fill(i int, row batch.Row) error {
	row.Set(batch.IDs, int32(i))
	return nil
}

// TestAnswered has accuracies that are worked out by hand.
func TestAnswered(t *testing.T) {
	f := &data.FileExamples{}
	add := func(kind string, answers ...data.Answer) { f.Add(data.Example{Kind: kind, Answers: answers}, "x") }
	// all but one mean 2
	add("number", data.Answer{Text: "two", Weight: .7}, data.Answer{Text: "2", Weight: .2},
		data.Answer{Text: "3", Weight: .1})
	add("colour", data.Answer{Text: "teal", Weight: .8}, data.Answer{Text: "blue", Weight: .2})
	add("colour", data.Answer{Text: "red", Weight: 1})
	add("colour") // nobody knows
	add("number", data.Answer{Text: "4", Weight: 1})
	said := []string{"2", "blue", "Red", "red", "4"}
	asked := Answered{
		Answer: func(_ context.Context, b *batch.Batch) (out []string, err error) {
			for _, i := range b.Ints(batch.IDs) {
				out = append(out, said[i])
			}
			return out, nil
		},
		Columns:    []batch.Column{{Name: batch.IDs, Type: batch.Int32}},
		Candidates: []string{"2", "3", "blue", "red"}, Examples: f, Gallery: questionRows(5), Encoding: Encoding{BatchSize: 2},
	}
	s, err := asked.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Said, said) || s.Questions != 5 || s.Unknown != 1 || s.Outside != 2 { // teal and 4
		t.Errorf("%+v", s)
	}
	// 3 was given by one of ten, blue by two of ten; "Red" is not "red" where all agree.
	for i, want := range []float64{1, .6, 0, -1, 1} {
		if !(math.Abs(s.Right[i]-want) <= 1e-12) {
			t.Errorf("question %d: accuracy %v, want %v", i, s.Right[i], want)
		}
	}
	for name, c := range map[string][2]float64{
		"accuracy": {s.Accuracy, 100 * 2.6 / 4}, "reachable": {s.Reachable, 100 * (1 + .6 + 1) / 4},
		"majority": {s.Majority, 100 * 1. / 4}, "by kind": {s.ByKind, 100 * (1. + 1) / 4},
		"chance": {s.Chance, 100 * (1 + .3 + .6 + 1) / 4 / 4},
	} {
		if !(math.Abs(c[0]-c[1]) <= 1e-9) {
			t.Errorf("%s: %v, want %v", name, c[0], c[1])
		}
	}
	if want := []KindScore{{"colour", 2, 30}, {"number", 2, 100}}; !slices.EqualFunc(s.Kinds, want,
		func(a, b KindScore) bool {
			return a.Kind == b.Kind && a.Examples == b.Examples && math.Abs(a.Accuracy-b.Accuracy) < 1e-9
		}) {
		t.Errorf("kinds %v, want %v", s.Kinds, want)
	}
	if !slices.Equal(s.KindBest, []float64{50, 50}) {
		t.Errorf("best answers of kinds: %v", s.KindBest)
	}
	asked.Candidates = nil
	if s, err = asked.Run(t.Context()); err != nil || s.Reachable != 100 || s.Chance != 0 || s.Outside != 0 {
		t.Errorf("written freely: %+v, %v", s, err)
	}
	// One answer to a question where all agree and to one where they do not is the same answer.
	f = &data.FileExamples{}
	add("number", data.Answer{Text: "two", Weight: 1})
	add("number", data.Answer{Text: "two", Weight: .7}, data.Answer{Text: "3", Weight: .3})
	asked.Examples, asked.Gallery = f, questionRows(2)
	if s, err = asked.Run(t.Context()); err != nil || s.Majority != 100 || s.ByKind != 100 {
		t.Errorf("two, always: %v and %v by kind (%v)", s.Majority, s.ByKind, err)
	}
	wrong := errors.New("wrong")
	asked.Answer = func(context.Context, *batch.Batch) ([]string, error) { return nil, wrong }
	if _, err := asked.Run(t.Context()); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
}
