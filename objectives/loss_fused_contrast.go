package objectives

import (
	"math"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// PairFusion makes one row of the features of an image and of a text.
type PairFusion interface {
	// Fuse returns (B, D) of features of images and texts (B, C).
	Fuse(c *encoders.Context, s encoders.Scope, images, texts *gorgonia.Node) *gorgonia.Node
}

var (
	_ PairFusion = encoders.Tucker{}
	_ PairFusion = encoders.PairAttention{}
)

// FusedContrast is the contrast of fused pairs (ViPMM, equation 23): a pair as the student sees it, Q_i, shall be nearest
// to itself as the teacher does, Q^aug_i, among the pairs of the batch,
//
//	L_q = mean_i -log( exp(Q_i . Q^aug_i / tau2) / sum_j exp(Q_i . Q^aug_j / tau2) )
//
// with unit rows Q and Q^aug, and one fusion for both: it has no momentum copy, and its gradient comes from both sides, while the
// teacher's features have none.
type FusedContrast struct {
	Weight      float64
	Temperature float64 // tau2
	Fusion      PairFusion
	Name        string // of the fusion's parameters
}

// Build implements Loss.
func (l FusedContrast) Build(s *Step) []Part {
	s = s.Whole()
	defer s.ofAll()()
	needTeacher(s, "adcl")
	scope := s.Params.As(encoders.Traits{Settings: "objective.adcl to that"}).In(l.Name)
	fused := func(x Sides) *gorgonia.Node {
		return nn.L2Normalize(l.Fusion.Fuse(s.Student, scope, x.Image.Features, x.Text.Features), 1e-12) // (B, D)
	}
	q, aug := arith.Combine([]float32{float32(1 / l.Temperature)}, fused(s.Online)), fused(s.Teacher)
	p := s.Part("adcl_fused", l.Weight, contrast.CrossEntropy(contrast.CrossEntropyArgs{
		Logits: similarity.Similarity(q, aug, nil, nil), Labels: s.Own(), // (B, B)
	}))
	p.Chance = math.Log(float64(s.Rows))
	return []Part{p}
}
