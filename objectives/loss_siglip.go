package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
)

// Names of the parameters of SigLIP.
const (
	sigmoidScale = "siglip/log_scale"
	sigmoidBias  = "siglip/bias"
)

// SigLIP is the sigmoid loss of Zhai et al. (2023, "Sigmoid Loss for Language Image
// Pre-Training", section 3.2, algorithm 1) over the pairs of a batch: each pair of an image
// and a text is judged by itself. The score is that of objective.itc without the geodesic, and its temperature takes no
// part.
//
//	L = -1/B sum_i sum_j log sigmoid(z_ij (t s_ij + b)),  t = exp(t')
//
// with z_ij = 1 for right answers and -1 for all others, scores s of PairScores, and
// t' and b learned.
type SigLIP struct {
	section.Weighted
	ofPairs
	// initial scale t of the scores; the paper's t = exp(t') with t' = log 10
	Scale float64 `toml:"scale"`
	// the scale is clamped to at most this
	ScaleMax float64 `toml:"scale_max"`
	// initial value b of what is added to the logits: far below 0, since most pairs are negatives
	Bias float64 `toml:"bias"`

	scale Values
}

var (
	_ Preparer = (*SigLIP)(nil)
	_ Starter  = (*SigLIP)(nil)
	_ Finisher = (*SigLIP)(nil)
)

// Defaults implements section.Defaulter.
func (l *SigLIP) Defaults() { *l = SigLIP{Scale: 10, ScaleMax: 100, Bias: -10} }

// Check implements section.Checked.
func (l *SigLIP) Check(k *section.Checker) {
	// Outside of these float32 has no room for what is computed from them.
	k.Require("scale", l.Scale >= 1e-3 && l.Scale <= 1e4, "must be between 0.001 and 10000", "10 in the paper")
	k.Require("scale_max", l.ScaleMax >= l.Scale && l.ScaleMax <= 1e4,
		"must be at least objective.siglip.scale and at most 10000")
	k.Require("bias", l.Bias >= -1e3 && l.Bias <= 1e3, "must be between -1000 and 1000", "-10 in the paper")
}

// Build implements Loss.
func (l *SigLIP) Build(s *Step) []Part {
	if s.Interaction != nil {
		s = s.Whole()
	}
	scale, bias := s.Params.As(encoders.Traits{Group: encoders.GroupTemperature}),
		s.Params.As(encoders.Traits{Group: encoders.GroupBias})
	a := contrast.SigmoidArgs{
		Scores:   s.PairScores(), // (B, N)
		LogScale: scale.Param(sigmoidScale, encoders.Const(float32(math.Log(l.Scale)))),
		Bias:     bias.Param(sigmoidBias, encoders.Const(float32(l.Bias))),
	}
	p := s.positives()
	a.Labels, a.RowIDs, a.ColIDs = p.Labels, p.RowIDs, p.ColIDs
	l.scale = s.Values(sigmoidScale)
	part := s.Part("siglip", l.Weight, contrast.SigmoidContrast(a))
	// Of scores of 0: one right answer and B-1 wrong ones for each image.
	part.Chance = softplus(-l.Bias) + float64(s.All()-1)*softplus(l.Bias)
	return []Part{part, {Name: "siglip_scale", Node: arith.MulExp(s.SharedFloats("one", []float32{1}), a.LogScale),
		Measure: true}}
}

// Start implements Starter: a scale that training starts from may be out of range.
func (l *SigLIP) Start(int) { l.Finish() }

// Finish implements Finisher: it keeps the scale in its range.
func (l *SigLIP) Finish() {
	v := l.scale.Value()
	v[0] = min(v[0], float32(math.Log(l.ScaleMax)))
}

// softplus returns log(1 + exp(x)).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
