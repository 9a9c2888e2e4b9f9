package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/interaction"
)

// WordPatch is the contrast of the words of texts with the patches of images within the batch (ViPMM, equations 8 to
// 12): each patch is compared with a summary of the text, each word with one of the image, the sum of both directions.
//
// Of the alignments phi_loc of interaction.WordPatchScores, which also says how equations 9 and 10 are read,
//
//	L = -1/B sum_i log(phi_ii / sum_j phi_ij) - 1/B sum_i log(phi_ii / sum_j phi_ji)
//
// where the printed loss lacks the logarithms. Words and patches are tokens as the heads map them, of length 1;
// class tokens, what stands around a text and padding take no part. Pairs of one id are positives of each other,
// where the step has ids.
type WordPatch struct {
	// of the loss in the total, 1 in ViPMM; 0: off
	section.Weighted
	ofTokens
	// of the cosines of words and patches with their summaries, tau_phi in ViPMM
	Temperature float64 `toml:"temperature"`
	// of the softmax of the attention that makes a summary, tau_1 in ViPMM, which does not say its value
	ContextTemperature float64 `toml:"context_temperature"`
	// of the products of words and patches that the attention is the softmax of: nearly flat at 1, the value of ViPMM
	AttentionScale float64 `toml:"attention_scale"`
	// mean (over words and over patches) | sum (as printed, which favours long texts)
	Reduce string `toml:"reduce"`
}

var _ Preparer = (*WordPatch)(nil)

// Defaults implements section.Defaulter.
func (l *WordPatch) Defaults() {
	*l = WordPatch{Temperature: 0.1, ContextTemperature: 0.1, AttentionScale: 1, Reduce: "mean"}
}

// Check implements section.Checked.
func (l *WordPatch) Check(k *section.Checker) {
	checkTokens(k, l)
	k.Between(1e-3, 1e4, "temperature", "context_temperature", "attention_scale")
	k.OneOf("reduce", "mean", "sum")
}

// Build implements Loss.
func (l *WordPatch) Build(s *Step) []Part {
	own := s
	s = s.Whole()
	logits := own.Gather(interaction.WordPatchScores(own.tokensOf("word_patch", own.Online.Image),
		s.tokensOf("word_patch", s.Online.Text), interaction.WordPatch{
			Scale: float32(l.AttentionScale), Context: float32(l.ContextTemperature),
			Temperature: float32(l.Temperature), Sum: l.Reduce == "sum",
		})) // (N, N)
	mean := InBatchContrast(logits, s.positives()).Loss
	part := s.Part("word_patch", l.Weight, arith.WeightedSum([]float32{2}, mean))
	part.Chance = 2 * math.Log(float64(s.Rows))
	return []Part{part}
}
