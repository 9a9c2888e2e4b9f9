package objectives

import (
	"slices"

	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/geodesic"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// SwappedPrediction is the loss of SwAV (Caron et al. 2020, eq. 1 and 2). Scores of the
// features z_1, z_2 of two views with K prototypes p give each view a code q, balanced
// over the batch and past features by Sinkhorn, and each view predicts the other's:
//
//	L = (H(q_2, softmax(s(z_1, p)/tau)) + H(q_1, softmax(s(z_2, p)/tau))) / 2
//
// s is the cosine, as in SwAV, or a geodesic. Mei et al. name SwAV in section 3.5 and say
// nothing of how; the reading here is that prototypes are points like any other: each
// hangs at its nearest bottom centre of the graph over past features, and eq. 3 gives the
// distance of a feature to it. Codes come from the same scores. To a feature the gradient
// flows in the mode of the term's Paths; to a prototype it is always that of the cosine, since
// eq. 3 has none for points of the pool, and prototypes that nothing moves learn nothing.
type SwappedPrediction struct {
	Views      [2]*gorgonia.Node // (B, C) unit rows each
	Prototypes *gorgonia.Node    // (K, C) unit rows
	Queue      *gorgonia.Node    // (Q, C) past features, unit rows; nil: none
	Rows       *gorgonia.Node    // how many of them exist, int32 scalar
	Score      Score             // of cosine and geodesic terms
	// Centres, Paths and Count are the graph over Queue that geodesic scores go through.
	Centres, Paths, Count *gorgonia.Node

	Epsilon    float32 // temperature of the codes
	Iterations int     // of Sinkhorn
	Constants  SwappedConstants
}

// SwappedConstants are inputs that never change.
type SwappedConstants struct {
	One   *gorgonia.Node // scalar 1
	Minus *gorgonia.Node // scalar -1
	First *gorgonia.Node // scalar int32 0
	Zeros *gorgonia.Node // (B) int32 0
}

// Build adds the loss to the step, a scalar.
func (p SwappedPrediction) Build() *gorgonia.Node {
	var past *gorgonia.Node // (Q, K)
	if p.Queue != nil {
		past = p.scores(p.Queue)
	}
	var scores, codes [2]*gorgonia.Node // (B, K)
	for i, z := range p.Views {
		scores[i] = p.scores(z)
		codes[i] = contrast.Sinkhorn(contrast.SinkhornArgs{Scores: scores[i], Queue: past, Rows: p.Rows, Epsilon: p.Epsilon, Iterations: p.Iterations})
	}
	predict := func(view, code int) *gorgonia.Node {
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: p.Score.Temperature.Divide(scores[view]),
			Labels: p.Constants.Zeros, Teacher: codes[code], Alpha: p.Constants.One, // the code alone
		})
	}
	return arith.WeightedSum([]float32{.5, .5}, predict(0, 1), predict(1, 0))
}

// scores are those of unit rows z (N, C) with every prototype, (N, K).
func (p SwappedPrediction) scores(z *gorgonia.Node) *gorgonia.Node {
	cosines := func(z *gorgonia.Node) *gorgonia.Node { return similarity.Similarity(z, p.Prototypes, nil, nil) }
	if !p.Score.Has(scoring.Geodesic) {
		return cosines(z)
	}
	owner, reach := geodesic.NearestCentre(p.Prototypes, p.Centres, p.Count, space.Space{})
	// The prototypes are a pool that the "batch" of all of them fills.
	bank := &Bank{Keys: p.Prototypes, Queue: p.Prototypes, Pointer: p.Constants.First,
		Graph: &Graph{Centres: p.Centres, Paths: p.Paths, Owner: owner, Reach: reach, Count: p.Count}}
	score := p.Score
	score.Terms = slices.Clone(score.Terms)
	for i := range score.Terms {
		score.Terms[i].Paths.DirectPositives = false // no prototype is a feature's own
	}
	x := score.Scores(bank, z, Image, Positives{})
	// Zero in value: it carries the gradient of the cosine to the prototypes.
	c := cosines(op.Detach(z))
	return arith.Add(x, arith.AddScaled(c, c, p.Constants.Minus))
}
