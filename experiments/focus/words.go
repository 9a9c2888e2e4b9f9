package main

import (
	"context"
	"strings"

	"github.com/geoalign/geoalign/data/transform"
	heat "github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/run/explain"
	"gonum.org/v1/gonum/stat"
)

// absent is a word that no caption has.
const absent = "qqq"

// words returns how what the words of the caption of a scene are worth goes with what the score loses
// when a word is replaced by one that the vocabulary lacks: the correlation over the words.
func words(x *explain.Explainer, img *transform.Image, caption string) (float64, error) {
	score := func(text string) (explain.Relevance, error) {
		if err := x.Set(img, text); err != nil {
			return explain.Relevance{}, err
		}
		return x.Pair(context.Background())
	}
	r, err := score(caption)
	if err != nil {
		return 0, err
	}
	var worth, loss []float64
	var list []string // as the model reads them: a comma is a word where captions are not cleaned
	for i, s := range heat.Shares(r.Words) {
		if w := r.Words[i]; !w.Special {
			worth, list = append(worth, s), append(list, w.Text)
		}
	}
	for i, w := range list {
		list[i] = absent
		without, err := score(strings.Join(list, " "))
		if err != nil {
			return 0, err
		}
		list[i] = w
		loss = append(loss, r.Score-without.Score)
	}
	return stat.Correlation(worth, loss, nil), nil
}
