package encoders

import (
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// Pool says what stands for a whole image or text where a head reads one token.
type Pool string

// The pools. The zero value is PoolClass.
const (
	PoolClass     = "class"     // the class tokens, the first ones
	PoolPooler    = "pooler"    // of texts: the class token through a linear layer and tanh, BERT's pooler
	PoolMean      = "mean"      // the mean of patches, or of the words that are no padding
	PoolAttention = "attention" // of images: attention of a learned probe to the patches
	// of texts: the mean of the words that are no padding, over the states behind the first and the last layer
	PoolFirstLast = "first_last"
	// of texts: the mean of the words that are no padding, each weighed by its number (SGPT, Muennighoff 2022)
	PoolWeighted = "weighted_mean"
	PoolMax      = "max" // the largest value of each channel, of regions or of the words that are no padding
	// the generalised pooling operator of VSE-infinity, of the same: sorted values under learned weights
	PoolGPO = "gpo"
	// external space attention, of the same: a mean of each channel under weights of that channel
	PoolESA = "esa"
	PoolGRU = "gru" // of regions: the last state of recurrent units over them
	// of texts: the last token that is no padding; of a GRU the last state of each direction
	PoolEnd = "end"
)

// byClass says whether class tokens are what is read.
func (p Pool) byClass() bool { return p == "" || p == PoolClass }

// SwiGLU is the activation of a gated MLP, whose first layer makes gates and values side by
// side (Shazeer 2020).
const SwiGLU = "swiglu"

// meanWords is the mean of the words of texts x (R*L, D) that are no padding: (R, D).
func meanWords(x, lengths *gorgonia.Node, l int) *gorgonia.Node {
	return nn.MeanTokens(x, lengths, l, 0)
}

// lastPlaces are the places of the last token of each of R texts of L places that is no
// padding.
func lastPlaces(lengths *gorgonia.Node, l int) *Places {
	return &Places{Rows: layout.LastRows(lengths, l), Sequences: layout.Numbers(lengths)}
}
