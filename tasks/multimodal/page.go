package multimodal

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/tasks"
)

// mostScores bounds the classes of a sample that a page shows with their scores.
const mostScores = 5

// ExamplesPage implements tasks.Pictured.
func (s Scores) ExamplesPage(ctx context.Context) (report.ExamplesPage, error) {
	p := report.ExamplesPage{Classes: &report.Classes{Title: s.Of.Title, Table: s.PerClass}}
	for _, k := range s.Kinds {
		p.Kinds = append(p.Kinds, report.KindAccuracy{Kind: k.Kind, Number: k.Examples, Accuracy: k.Accuracy,
			Baseline: -1})
	}
	var right, wrong []int
	for i, class := range s.Predicted {
		switch s.Samples.Example(i).Label {
		case data.UnknownLabel:
		case class:
			right = append(right, i)
		default:
			wrong = append(wrong, i)
		}
	}
	rows := slices.Concat(tasks.Sampled(wrong, tasks.MostShown), tasks.Sampled(right, tasks.MostShown))
	return p, s.Heat.Cards(ctx, &p, rows, s.card)
}

// card draws a sample with what was predicted of it.
func (s Scores) card(i int) (c tasks.Card, err error) {
	e, names, class := s.Samples.Example(i), s.Samples.Labels(), s.Predicted[i]
	k := len(names)
	c.Example = report.Example{
		Name: e.ID, Kind: e.Kind, Text: e.Text, Answer: names[class], Truth: names[e.Label], Right: class == e.Label,
		Scores: bestScores(s.Logits[i*k:][:k], names, e.Label),
	}
	return c, c.AddPictures(s.Samples, i)
}

// bestScores are the probabilities of the best classes, by their logits.
func bestScores(logits []float32, names []string, own int32) (list []report.AnswerScore) {
	top, sum := float64(slices.Max(logits)), 0.0
	for k, v := range logits {
		p := math.Exp(float64(v) - top)
		sum += p
		list = append(list, report.AnswerScore{Answer: names[k], Score: p, True: int32(k) == own})
	}
	for k := range list {
		list[k].Score /= sum
	}
	slices.SortStableFunc(list, func(a, b report.AnswerScore) int { return cmp.Compare(b.Score, a.Score) })
	return list[:min(mostScores, len(list))]
}
