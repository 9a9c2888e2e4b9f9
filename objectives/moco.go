package objectives

import (
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// ViewContrast is the contrast of two views of an image against a queue (He et al. 2020,
// eq. 1): with the features q of one view through the encoder and the momentum features k
// of the other in the bank,
//
//	L = mean_i -log exp(s(q_i, k_i)/tau) / sum_j exp(s(q_i, x_j)/tau)
//
// where x_j runs over the bank and s is the cosine, as in MoCo, or the geodesic through
// the graph over the bank's queue (Mei et al., section 3.5). The other keys of the batch
// are negatives too, as in the pool of Mei et al.; MoCo adds them to the queue afterwards.
type ViewContrast struct {
	Query     *gorgonia.Node // (B, C) unit rows
	Bank      *Bank          // of the momentum features of the other views
	Score     Score
	Positives Positives // Labels: the column of each row's own key
}

// Build adds the loss to the step, a scalar, and the share of rows whose own key scores
// highest; columns that do not exist count as scores of 0 there.
func (c ViewContrast) Build() (loss, accuracy *gorgonia.Node) {
	logits := c.Score.Logits(c.Bank, c.Query, Image, c.Positives)
	loss = contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: c.Positives.Labels, Cols: c.Bank.Cols})
	return loss, contrast.Accuracy(logits, c.Positives.Labels)
}
