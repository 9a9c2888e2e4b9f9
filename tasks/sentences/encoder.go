package sentences

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Features that can stand for a sentence.
const (
	ClassFeature = "class" // the class tokens before any head
	MeanFeature  = "mean"  // the mean of the states of its tokens, special ones included
	HeadFeature  = "head"  // the feature of the shared space
)

// NewEncoder makes vectors of sentences as eval.sentences.feature says.
func NewEncoder(s *tasks.Setup) SentenceEncoder {
	return SentenceEncoder{Model: s.Model.Text, Feature: tasks.Of[Eval](s).Feature, Encoding: s.Encoding,
		Gallery: func(list []string) data.Gallery {
			g := s.Listed(list)
			g.Blank = true
			return g
		}}
}

// SentenceEncoder turns sentences into vectors of a text tower, each different one once.
type SentenceEncoder struct {
	Model   tasks.TextEncoder
	Feature string                                // ClassFeature, MeanFeature or HeadFeature
	Gallery func(sentences []string) data.Gallery // columns of sentences
	tasks.Encoding
}

// Vectors are those of different sentences.
type Vectors struct {
	X     []float32 // (n, Width)
	Width int
	at    map[string]int
}

// Row is the vector of a sentence that was encoded.
func (v Vectors) Row(sentence string) []float32 {
	i := v.at[sentence]
	return v.X[i*v.Width : (i+1)*v.Width]
}

// Encode returns the vectors of sentences, which may repeat. They are encoded in the order of their length. It keeps 4
// bytes x n x Width for n different ones, and ends early with the error of ctx. Vectors that are not finite are an
// *eval.NonFiniteError.
func (e SentenceEncoder) Encode(ctx context.Context, sentences []string, phase string) (Vectors, error) {
	v := Vectors{at: map[string]int{}}
	var list []string
	for _, s := range sentences {
		if _, known := v.at[s]; !known {
			v.at[s] = 0
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return v, fmt.Errorf("tasks: %s: there is no sentence", phase)
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for i, s := range list {
		v.at[s] = i
	}
	var err error
	switch g := e.Gallery(list); e.Feature {
	case HeadFeature:
		v.X, err = e.Features(ctx, e.Model, g, phase)
	case MeanFeature:
		v.X, err = e.means(ctx, g, phase)
	default:
		v.X, err = e.ClassTokens(ctx, e.Model, g, phase)
	}
	if err != nil {
		return v, err
	}
	v.Width = len(v.X) / len(list)
	for i, x := range v.X {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) { // of which every cosine would read as 0
			return v, &eval.NonFiniteError{What: fmt.Sprintf(
				"tasks: %s: the vector of %q has a number that is not finite", phase, list[i/v.Width]),
				Cure: "evaluate another checkpoint"}
		}
	}
	return v, nil
}

// means returns the mean of the tokens of each row of a gallery, padding left out: (n, Model.Width).
func (e SentenceEncoder) means(ctx context.Context, g data.Gallery, phase string) (all []float32, err error) {
	l, d := e.Model.Len(), e.Model.Width()
	e.States = true
	err = e.Run(ctx, e.Model, g, phase, func(x tasks.Encoded) error {
		lengths := x.Lengths
		for i := range x.Rows {
			n := l
			if lengths != nil {
				n = max(1, min(int(lengths[i]), l))
			}
			mean := make([]float32, d)
			for row := range slices.Chunk(x.States[i*l*d:(i*l+n)*d], d) {
				for j, s := range row {
					mean[j] += s / float32(n)
				}
			}
			all = append(all, mean...)
		}
		return nil
	})
	return all, err
}
