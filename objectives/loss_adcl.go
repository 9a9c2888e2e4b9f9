package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// ADCL is the augmented data contrastive learning of ViPMM (section 3.4): the contrast of each side with the teacher's
// features of the other one against the queue, and the contrast of fused pairs.
type ADCL struct {
	// of each of its two parts in the total, mu in ViPMM, which has 0.04; 0: off
	section.Weighted
	// tau, by which products with the queue are divided, a constant
	Temperature float64 `toml:"temperature"`
	// of an image and a text: tucker (bilinear, as in MUTAN) | attention (of the two to each other) | none (without the
	// contrast of fused pairs)
	Fusion string `toml:"fusion"`
	// tau2, by which products of fused pairs are divided, a constant
	FusionTemperature float64 `toml:"fusion_temperature" when:"fusion!=none"`
	// channels of a fused pair
	Dim int `toml:"dim" when:"fusion!=none" fixed:"run" max:"65536"`
	// of the core of tucker, R; 0: the full core, of model.head.dim^3 weights
	Rank int `toml:"rank" when:"fusion=tucker" fixed:"run" max:"65536"`
	// of the projections of tucker, as in MUTAN's code
	Tanh bool `toml:"tanh" when:"fusion=tucker and rank>0" fixed:"run"`
	// of the features that are fused
	Dropout float64 `toml:"dropout" when:"fusion!=none"`
}

// Fusions of a pair.
const (
	fusionTucker    = "tucker"
	fusionAttention = "attention"
	fusionNone      = "none"
)

var _ Loss = (*ADCL)(nil)

// Defaults implements section.Defaulter.
func (l *ADCL) Defaults() {
	*l = ADCL{Temperature: 0.07, Fusion: fusionTucker, FusionTemperature: 0.1, Dim: 128, Rank: 10}
}

// Needs implements section.Needer.
func (*ADCL) Needs() []section.Fact { return []section.Fact{section.Captions} }

// Gives implements section.Giver.
func (l *ADCL) Gives() []section.Fact {
	list := []section.Fact{section.BatchImages, section.PastFeatures, section.TeacherFeatures, section.TeacherImages}
	if l.Fusion != fusionNone && l.Dropout > 0 {
		list = append(list, section.Dropout)
	}
	return list
}

// Check implements section.Checked.
func (l *ADCL) Check(k *section.Checker) {
	k.NotNegative("rank")
	k.Positive("dim")
	// Outside of these float32 has no room for the logits.
	for _, key := range []string{"temperature", "fusion_temperature"} {
		k.Require(key, k.Number(key) >= 1e-3 && k.Number(key) <= 1e3, "must be between 0.001 and 1000",
			"0.07 and 0.1 are usual")
	}
	k.OneOf("fusion", fusionTucker, fusionAttention, fusionNone)
	k.BelowOne("dropout")
	if !l.On() || !k.Has(section.Captions) {
		return
	}
	// Before it is told to have a teacher, which goes with none.
	k.Require("weight", k.Has(section.Features), "must be 0 with model.interaction", "it compares features")
	k.Require("weight", k.Value("momentum.enabled") == true, "must be 0 without momentum", needsTeacher)
	k.Require("weight", k.Has(section.Queue), "must be 0 without a queue", "its negatives are there: set queue.size")
	k.Require("weight", k.Value("model.head.topology") == "sphere",
		`must be 0 with another model.head.topology than "sphere"`, "it compares unit vectors of one sphere")
}

// Weights returns the weights of the matrices of the fusion of features of c channels.
func (l *ADCL) Weights(c int) int64 {
	n, out := int64(c), int64(l.Dim)*int64(c)
	switch {
	case !l.On() || l.Fusion == fusionNone:
		return 0
	case l.Fusion == fusionAttention:
		return 3*n*n + out
	case l.Rank > 0:
		return 2*int64(l.Rank)*n*n + out
	}
	return n*n*n + out
}

// Logits counts the products of a sample with a queue of both sides, and those of its c channels with each other with a
// full core.
func (l *ADCL) Logits(c, queue int) (n int64) {
	if !l.On() {
		return 0
	}
	if l.Fusion == fusionTucker && l.Rank == 0 {
		n = 2 * int64(c) * int64(c)
	}
	return n + 2*int64(queue)
}

// Build implements Loss.
func (l *ADCL) Build(s *Step) []Part { return append(l.queueContrast(s), l.fusedContrast(s)...) }

// queueContrast is the contrast of each side against the teacher's features of the other one (ViPMM, section 3.4 and
// algorithm 1; He et al. 2020, algorithm 1): of a text x_i, the teacher's feature y^m_i of its own image is the right
// answer, and the K images of the queue are the wrong ones,
//
//	L_t2v = mean_i -log( exp(x_i . y^m_i / tau) / (exp(x_i . y^m_i / tau) + sum_k exp(x_i . q_k / tau)) )
//
// and L_v2t likewise of an image against texts. So logits are (B, 1+K), where those of ITC have the teacher's features
// of the other pairs of the batch too, and tau is a constant. The loss is the sum of both. What the algorithm enqueues
// (it writes l_neg) are the teacher's features, and entries that were never filled take no part.
func (l *ADCL) queueContrast(s *Step) []Part {
	needTeacher(s, "adcl")
	banks := s.Banks()
	Need(banks.Size > 0 && banks.Text != nil, "adcl",
		"needs the queue of both sides: set queue.size > 0, or objective.adcl.weight = 0")
	against := func(f, keys *gorgonia.Node, b *Bank) *gorgonia.Node {
		f = arith.Combine([]float32{float32(1 / l.Temperature)}, f)       // (B, C)
		own := layout.Reshape(similarity.RowProducts(f, keys), s.Rows, 1) // (B, 1)
		others := similarity.Similarity(f, b.Queue, nil, banks.Usable)    // (B, K)
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: layout.ConcatColumns(own, others), Cols: layout.AddInt(banks.Usable, 1), // (B, 1+K)
			Labels: s.FixedInts("zeros", make([]int32, s.Rows)),
		})
	}
	return []Part{
		s.Part("adcl_t2v", l.Weight, against(s.Online.Text.Features, s.Teacher.Image.Features, banks.Image)),
		s.Part("adcl_v2t", l.Weight, against(s.Online.Image.Features, s.Teacher.Text.Features, banks.Text)),
	}
}

// pairFusion makes one row of the features of an image and of a text.
type pairFusion interface {
	// Fuse returns (B, D) of features of images and texts (B, C).
	Fuse(c *encoders.Context, s encoders.Scope, images, texts *gorgonia.Node) *gorgonia.Node
}

var (
	_ pairFusion = encoders.Tucker{}
	_ pairFusion = encoders.PairAttention{}
)

// fusion is that of the pairs that are contrasted, nil without.
func (l *ADCL) fusion() pairFusion {
	switch l.Fusion {
	case fusionTucker:
		return encoders.Tucker{Dim: l.Dim, Rank: l.Rank, Tanh: l.Tanh, Dropout: l.Dropout}
	case fusionAttention:
		return encoders.PairAttention{Dim: l.Dim, Dropout: l.Dropout}
	}
	return nil
}

// fusedContrast is the contrast of fused pairs (ViPMM, equation 23): a pair as the student sees it, Q_i, shall be
// nearest to itself as the teacher does, Q^aug_i, among the pairs of the batch,
//
//	L_q = mean_i -log( exp(Q_i . Q^aug_i / tau2) / sum_j exp(Q_i . Q^aug_j / tau2) )
//
// with unit rows Q and Q^aug, and one fusion for both: it has no twin, and its gradient comes from both sides, while
// the teacher's features have none.
func (l *ADCL) fusedContrast(s *Step) []Part {
	fusion := l.fusion()
	if fusion == nil {
		return nil
	}
	s = s.Whole()
	defer s.ofAll()()
	needTeacher(s, "adcl")
	scope := s.Params.As(encoders.Traits{Settings: "objective.adcl to that"}).In("adcl/" + l.Fusion)
	fused := func(x Sides) *gorgonia.Node {
		return nn.L2Normalize(fusion.Fuse(s.Student, scope, x.Image.Features, x.Text.Features), 1e-12) // (B, D)
	}
	q, aug := arith.Combine([]float32{float32(1 / l.FusionTemperature)}, fused(s.Online)), fused(s.Teacher)
	p := s.Part("adcl_fused", l.Weight, contrast.CrossEntropy(contrast.CrossEntropyArgs{
		Logits: similarity.Similarity(q, aug, nil, nil), Labels: s.Own(), // (B, B)
	}))
	p.Chance = math.Log(float64(s.Rows))
	return []Part{p}
}
