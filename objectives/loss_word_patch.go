package objectives

import (
	"math"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/interaction"
)

// WordPatch is the contrast of the words of texts with the patches of images within the batch (ViPMM, equations 8 to
// 12): of the alignments phi_loc of interaction.WordPatchScores, which also says how equations 9 and 10 are read,
//
//	L = -1/B sum_i log(phi_ii / sum_j phi_ij) - 1/B sum_i log(phi_ii / sum_j phi_ji)
//
// where the printed loss lacks the logarithms. Words and patches are tokens as the heads map them, of length 1;
// class tokens, what stands around a text and padding take no part. Pairs of one id are positives of each other,
// where the step has ids.
type WordPatch struct {
	Weight             float64
	Temperature        float64 // tau of the cosines
	ContextTemperature float64 // tau_1 of the softmax of the attention
	Scale              float64 // of the products that the attention is the softmax of
	Sum                bool    // phi_loc is the sum over words and patches as printed, which grows with the length of a text, else the sum of both means
}

var _ Preparer = WordPatch{}

// Prepare implements Preparer.
func (l WordPatch) Prepare(s *Step) { s.ReadLocal() }

// Build implements Loss.
func (l WordPatch) Build(s *Step) []Part {
	own := s
	s = s.Whole()
	logits := own.Gather(interaction.WordPatchScores(own.tokensOf("word_patch", own.Online.Image), s.tokensOf("word_patch", s.Online.Text), interaction.WordPatch{
		Scale: float32(l.Scale), Context: float32(l.ContextTemperature), Temperature: float32(l.Temperature), Sum: l.Sum,
	})) // (N, N)
	mean := InBatchContrast(logits, s.positives()).Loss
	part := s.Part("word_patch", l.Weight, arith.WeightedSum([]float32{2}, mean))
	part.Chance = 2 * math.Log(float64(s.Rows))
	return []Part{part}
}
