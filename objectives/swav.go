package objectives

import (
	"slices"

	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/geodesic"
	"github.com/geoalign/geoalign/ops/nn"
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
// With V smaller views of each image (multi-crop, section 3.2) every view but its own predicts a code, and only the two
// have codes:
//
//	L = mean_k 1/(1+V) sum_{v /= k} H(q_k, softmax(s(z_v, p)/tau))
//
// s is the cosine, as in SwAV, or a geodesic. Mei et al. name SwAV in section 3.5 and say
// nothing of how; the reading here is that prototypes are points like any other: each
// hangs at its nearest bottom centre of the graph over past features, and eq. 3 gives the
// distance of a feature to it. Codes come from the same scores. To a feature the gradient
// flows in the mode of the term's Paths; to a prototype it is always that of the cosine, since
// eq. 3 has none for points of the pool, and prototypes that nothing moves learn nothing.
type SwappedPrediction struct {
	Views      [2]*gorgonia.Node // (B, C) unit rows each
	Crops      *gorgonia.Node    // (B*V, C) unit rows of the smaller views, one image after the other; nil: none
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
	// CropImages (B*V) int32 are the images of the crops, and CropZeros as many 0; nil without crops.
	CropImages, CropZeros *gorgonia.Node
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
		codes[i] = contrast.Sinkhorn(contrast.SinkhornArgs{Scores: scores[i], Queue: past, Rows: p.Rows,
			Epsilon: p.Epsilon, Iterations: p.Iterations})
	}
	predict := func(scores, codes, zeros *gorgonia.Node) *gorgonia.Node {
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: p.Score.Temperature.Divide(scores),
			Labels: zeros, Teacher: codes, Alpha: p.Constants.One, // the code alone
		})
	}
	zeros := p.Constants.Zeros
	if p.Crops == nil {
		return arith.WeightedSum([]float32{.5, .5}, predict(scores[0], codes[1], zeros),
			predict(scores[1], codes[0], zeros))
	}
	small := p.scores(p.Crops) // (B*V, K)
	own := func(k int) *gorgonia.Node { return nn.GatherRows(codes[k], p.Constants.CropImages, 1) }
	v := float32(p.Crops.Shape()[0] / p.Views[0].Shape()[0])
	one, all := .5/(1+v), .5*v/(1+v) // of a view, and of the mean over the crops
	return arith.WeightedSum([]float32{one, one, all, all}, predict(scores[0], codes[1], zeros),
		predict(scores[1], codes[0], zeros), predict(small, own(0), p.Constants.CropZeros),
		predict(small, own(1), p.Constants.CropZeros))
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
