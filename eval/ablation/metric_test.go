package ablation

import "testing"

// TestSentenceMetrics: numbers of sentence pairs are known, and which way each is better.
func TestSentenceMetrics(t *testing.T) {
	for name, want := range map[string]string{
		"eval/sts/stsb/spearman": "higher", "eval/pairs/mrpc/tuned": "higher", "eval/isotropy/stsb/effective_rank": "higher", "eval/isotropy/stsb/isoscore": "higher",
		"eval/isotropy/stsb/mean_cosine": "lower", "eval/isotropy/stsb/uniformity": "lower", "eval/isotropy/stsb/alignment": "lower", "eval/isotropy/stsb/rank": "",
		"eval/sentiment/mae": "lower", "eval/sentiment/constant_mae": "lower", "eval/sentiment/accuracy7": "higher", "eval/sentence_pairs/accuracy": "higher", "online_weight": "none",
	} {
		if got, known := direction(name); got != want || known != (want != "") {
			t.Errorf("%s: %q (%v), want %q", name, got, known, want)
		}
	}
}
