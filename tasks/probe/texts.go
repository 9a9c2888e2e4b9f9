package probe

import (
	"context"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/tasks"
)

// LabelledTexts is pairs of texts with their classes: row i of both galleries is a pair.
type LabelledTexts struct {
	A, B   data.Gallery
	Labels []int32
}

// TextProbe measures what frozen features of texts tell about a relation of two of them: the accuracy of a
// linear classifier on |u-v| and u*v of the class tokens u and v of two texts, one after the other (Conneau
// et al. 2017, section 3.1, without the two vectors themselves).
//
// With n training and n' test pairs and m class tokens of width D it keeps 4 bytes x 4*(n+n')*m*D.
type TextProbe struct {
	Model       tasks.ClassEncoder
	Train, Test LabelledTexts
	Classes     []string // names
	Classifier
	tasks.Encoding
}

// Run encodes both parts, fits and classifies. It ends early with the error of ctx.
func (p TextProbe) Run(ctx context.Context) (Scores, error) {
	train, err := p.encode(ctx, "training", p.Train)
	if err != nil {
		return Scores{}, err
	}
	test, err := p.encode(ctx, "test", p.Test)
	if err != nil {
		return Scores{}, err
	}
	return p.Classify(ctx, train, test, p.Classes, p.Progress)
}

// encode returns |u-v| and u*v of some pairs.
func (p TextProbe) encode(ctx context.Context, part string, t LabelledTexts) (Labelled, error) {
	n := len(t.Labels)
	if t.A.Len() != n || t.B.Len() != n || n == 0 {
		return Labelled{}, fmt.Errorf("tasks: a probe of texts needs pairs with a label each (got %d and %d texts and %d labels)", t.A.Len(), t.B.Len(), n)
	}
	u, err := p.ClassTokens(ctx, p.Model, t.A, "encoding first texts of "+part)
	if err != nil {
		return Labelled{}, fmt.Errorf("tasks: first texts of %s: %w", part, err)
	}
	v, err := p.ClassTokens(ctx, p.Model, t.B, "encoding second texts of "+part)
	if err != nil {
		return Labelled{}, fmt.Errorf("tasks: second texts of %s: %w", part, err)
	}
	return Labelled{Relate(u, v, n), t.Labels}, nil
}

// Relate returns |u-v| and u*v of n pairs of rows: (n, 2D).
func Relate(u, v []float32, n int) []float32 {
	d := len(u) / n
	out := make([]float32, 2*len(u))
	for i := range n {
		row := out[i*2*d:]
		for j := range d {
			a, b := u[i*d+j], v[i*d+j]
			row[j], row[d+j] = float32(math.Abs(float64(a-b))), a*b
		}
	}
	return out
}
