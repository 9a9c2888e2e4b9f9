package run

import (
	"bytes"
	"context"
	"image/png"
	"math"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/explain"
	pages "github.com/geoalign/geoalign/report"
)

// Bounds of an example within a page: the longer side of a picture in pixels, and the classes with their scores.
const (
	mostJudged = 240
	mostScores = 5
)

// ExamplesPage implements Pictured.
func (s JudgedExamples) ExamplesPage(ctx context.Context) (pages.ExamplesPage, error) {
	p := pages.ExamplesPage{Classes: &pages.Classes{Title: taskTitles[s.Of], Table: s.ClassifiedScores.Table}, Notes: s.Heat.note()}
	for _, k := range s.Kinds {
		p.Kinds = append(p.Kinds, pages.KindAccuracy{Kind: k.Kind, Number: k.Examples, Accuracy: k.Accuracy, Baseline: -1})
	}
	var right, wrong []int
	for i, said := range s.Said {
		switch s.Examples.Example(i).Label {
		case data.UnknownLabel:
		case said:
			right = append(right, i)
		default:
			wrong = append(wrong, i)
		}
	}
	wrong, right = sampled(wrong, mostShown), sampled(right, mostShown)
	maps, err := s.Heat.of(ctx, slices.Concat(wrong, right))
	if err != nil {
		return p, err
	}
	for _, x := range []struct {
		from []int
		to   *[]pages.Example
	}{{wrong, &p.Wrong}, {right, &p.Right}} {
		for _, i := range x.from {
			e, err := s.card(i, maps[i])
			if err != nil {
				return p, err
			}
			*x.to = append(*x.to, e)
		}
	}
	return p, nil
}

// sampled returns at most n of a list, at even distances: files often have the examples of a class one after the other.
func sampled(list []int, n int) []int {
	if len(list) <= n {
		return list
	}
	some := make([]int, n)
	for k := range some {
		some[k] = list[k*len(list)/n]
	}
	return some
}

// sides name the pictures of an example that has two.
var sides = [...]string{"left", "right"}

// card draws an example with what was said of it, and the heat maps of its pictures.
func (s JudgedExamples) card(i int, maps []explain.Map) (pages.Example, error) {
	e, names := s.Examples.Example(i), s.Examples.Labels()
	card := pages.Example{Name: e.ID, Kind: e.Kind, Text: e.Text, Answer: names[s.Said[i]], Truth: names[e.Label], Right: s.Said[i] == e.Label}
	var images []*transform.Image
	for k := range s.Examples.Pictures() {
		img, err := s.Examples.Picture(i, k)
		if err != nil {
			return card, err
		}
		p, err := pictureOf(img, s.Examples.PictureName(i, k))
		if err != nil {
			return card, err
		}
		if s.Examples.Pictures() > 1 {
			p.Caption = sides[k]
		}
		card.Pictures, images = append(card.Pictures, p), append(images, img)
	}
	k := len(names)
	card.Scores = bestScores(s.Logits[i*k:][:k], names, e.Label)
	var err error
	card.Pictures, err = s.Heat.beside(card.Pictures, maps, images...)
	return card, err
}

// pictureOf is a picture of a card.
func pictureOf(img *transform.Image, name string) (pages.Picture, error) {
	var b bytes.Buffer
	err := png.Encode(&b, explain.Enlarged(explain.Reduced(img.NRGBA(), mostJudged)))
	return pages.Picture{PNG: b.Bytes(), Alt: name}, err
}

// bestScores are the probabilities of the best classes, by their logits.
func bestScores(logits []float32, names []string, own int32) (list []pages.AnswerScore) {
	top, sum := float64(slices.Max(logits)), 0.0
	for k, v := range logits {
		p := math.Exp(float64(v) - top)
		sum += p
		list = append(list, pages.AnswerScore{Answer: names[k], Score: p, True: int32(k) == own})
	}
	for k := range list {
		list[k].Score /= sum
	}
	slices.SortStableFunc(list, func(a, b pages.AnswerScore) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return list[:min(mostScores, len(list))]
}
