package objectives

import (
	"slices"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/similarity"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// Modality is what a feature was made of.
type Modality int

// The two sides of a pair.
const (
	Image Modality = iota
	Text
)

// Score compares features of images and texts: a weighted sum of terms, divided by a
// temperature. It is the one way in which pairs are scored in a step: by contrasts and
// their soft targets, against a batch, a queue or a graph over it, and to draw negatives
// by. Package objectives/scoring computes the same of stored features.
type Score struct {
	Space       space.Space // of the features
	Terms       []Term
	Temperature Temperature
}

// Term is a measure of pairs. Package objectives/scoring says what each kind is.
type Term struct {
	Kind   scoring.Kind
	Weight float32
	// Metric is W of gssf: (C) for a diagonal, (N, d, d) for blocks, (C, C) for a dense one;
	// nil is the identity.
	Metric *gorgonia.Node
	Net    *encoders.PairNet // of the metric mlp, what it adds to the product; else nil
	Paths  Paths             // of geodesic
}

// Temperature divides scores.
type Temperature struct {
	Node *gorgonia.Node // scalar tau, or with Log the logarithm of the scale 1/tau, as in CLIP
	Log  bool
}

// Divide returns x/tau, x itself without a temperature.
func (t Temperature) Divide(x *gorgonia.Node) *gorgonia.Node {
	if t.Node == nil {
		return x
	}
	if t.Log {
		return arith.MulExp(x, t.Node)
	}
	return arith.DivScalar(x, t.Node)
}

// Has says whether the score has a term of a kind.
func (s Score) Has(kind scoring.Kind) bool {
	return slices.ContainsFunc(s.Terms, func(t Term) bool { return t.Kind == kind })
}

// Logits returns the scores of rows f (B, C), of modality from, with every column of b,
// divided by the temperature: (B, columns). Gradients flow to f, to metrics and to the
// temperature.
func (s Score) Logits(b *Bank, f *gorgonia.Node, from Modality, positives Positives) *gorgonia.Node {
	return s.Temperature.Divide(s.Scores(b, f, from, positives))
}

// Scores is Logits before the temperature.
func (s Score) Scores(b *Bank, f *gorgonia.Node, from Modality, positives Positives) *gorgonia.Node {
	return s.sum(f, from, b.Cosine, b.distance, func(t Term) *gorgonia.Node {
		Need(t.Net == nil, "gssf", `a metric "mlp" compares the pairs of a batch, not a batch with a queue`)
		return b.Geodesic(f, t.Paths, positives)
	})
}

// Pairs returns the scores of images (B, C) with texts (B2, C), divided by the
// temperature: (B, B2). Gradients flow to both sides. There must be no geodesic term,
// which pairs have with the entries of a queue alone.
func (s Score) Pairs(images, texts *gorgonia.Node) *gorgonia.Node {
	products := func(f *gorgonia.Node) *gorgonia.Node { return similarity.Similarity(f, texts, nil, nil) }
	distances := func(d similarity.Distance, f *gorgonia.Node) *gorgonia.Node {
		return similarity.NegativeDistance(d, f, texts, nil, nil)
	}
	nets := func(t Term) *gorgonia.Node { return t.Net.Pairs(images, texts) }
	return s.Temperature.Divide(s.sum(images, Image, products, distances, nets))
}

// sum adds the terms up. Those that are products share one: of features that have been
// folded with their metrics. other scores a geodesic, or what a network adds to the product.
func (s Score) sum(f *gorgonia.Node, from Modality, products func(f *gorgonia.Node) *gorgonia.Node,
	distances func(d similarity.Distance, f *gorgonia.Node) *gorgonia.Node,
	other func(t Term) *gorgonia.Node) *gorgonia.Node {
	var terms gorgonia.Nodes
	var weights []float32
	add := func(w float32, n *gorgonia.Node) { weights, terms = append(weights, w), append(terms, n) }
	if folded, w := s.fold(f, from); folded != nil {
		add(w, products(folded))
	}
	for _, t := range s.Terms {
		switch {
		case t.Kind == scoring.L2, t.Kind == scoring.Angle:
			add(t.Weight, distances(similarity.Distance{Kind: string(t.Kind), Spheres: s.Space.Groups()}, f))
		case t.Kind == scoring.Geodesic, t.Net != nil:
			add(t.Weight, other(t))
		}
	}
	return combine(weights, terms)
}

// fold returns f' (B, C) and a weight by which its products with features of the other
// modality are the sum of the terms that are products; nil without any. With x an image
// and y a text,
//
//	x^T W y = (W^T x) . y = x . (W y)
func (s Score) fold(f *gorgonia.Node, from Modality) (*gorgonia.Node, float32) {
	var terms gorgonia.Nodes
	var weights []float32
	for _, t := range s.Terms {
		var x *gorgonia.Node
		switch t.Kind {
		case scoring.Cosine, scoring.Inner:
			x = f
		case scoring.GSSF:
			if x = encoders.FoldTexts(f, t.Metric); from == Image {
				x = encoders.FoldImages(f, t.Metric)
			}
		default:
			continue
		}
		weights, terms = append(weights, t.Weight), append(terms, x)
	}
	if len(terms) == 1 {
		return terms[0], weights[0]
	}
	return combine(weights, terms), 1
}

// combine returns the weighted sum, nil of nothing. A single term of weight 1 is itself.
func combine(weights []float32, terms gorgonia.Nodes) *gorgonia.Node {
	if len(terms) == 0 {
		return nil
	}
	if len(terms) == 1 && weights[0] == 1 {
		return terms[0]
	}
	return arith.Combine(weights, terms...)
}
