package encoders

import (
	"math"

	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/recurrent"
	"gorgonia.org/gorgonia"
)

// CaptionDecoder predicts the words of a caption one after the other from the tokens of an image (S2VT, Venugopalan et
// al. 2015, with attention, as in VSRN, Li et al. 2019, section 3.4): recurrent units read the tokens of the image,
// others write the caption from their last state on, and attend before each word to what was read.
//
//	m      = GRU(dropout(fc(x)))                    the memory, (T, H)
//	p_t    = softmax(s . tanh(A m + a + Q h_t-1))
//	h_t    = GRU([dropout(word_t), sum p_t dropout(m)], h_t-1)
//	logits = out(h_t)                               of word t+1
type CaptionDecoder struct {
	Vocab     int     // V
	Width     int     // H, channels of a state
	Embedding int     // E, channels of a word
	Dropout   float64 // of what both units read; of the memory one mask for all words
}

// CaptionArgs are R images with the captions that are known of them.
type CaptionArgs struct {
	Images       *gorgonia.Node // (R*T, D) tokens
	ImageLengths *gorgonia.Node // (R) int32, tokens of each image
	Words        *gorgonia.Node // (R*L) int32
	Lengths      *gorgonia.Node // (R) int32, words of each caption
	T, L         int
}

// xavierNormal starts a weight from N(0, 2/(in+out)) and the bias as PyTorch does.
func xavierNormal(out int) start {
	return func(in int) (weight, bias Init) { return Normal(math.Sqrt(2 / float64(in+out))), LinearDefault(in) }
}

// Logits returns those of the word that follows each word, (R*L, V). They mean nothing beyond a length.
func (d CaptionDecoder) Logits(c *Context, s Scope, a CaptionArgs) *gorgonia.Node {
	h := d.Width
	if d.Vocab < 1 || h < 1 || d.Embedding < 1 {
		misuse("captioning", a.Images, "want a vocabulary, a width and an embedding of at least 1 (got %d, %d and %d)",
			d.Vocab, h, d.Embedding)
	}
	c.given(a.Lengths.Shape()[0], 1)
	x := c.dropout(linear(s, "encoder/fc", xavierNormal(h), a.Images, h), d.Dropout)
	memory := gruUnit(s.In("encoder"), x, a.ImageLengths, a.T, h, false) // (R*T, H)
	words := nn.Embed(s.Param("words/weight", Normal(1), d.Vocab, d.Embedding), a.Words)

	unit, bias := Uniform(1/math.Sqrt(float64(h))), s.In("decoder").As(Traits{Group: GroupBias})
	from := func(int) (Init, Init) { return unit, unit }
	attention := func(int) (Init, Init) { return LinearDefault(2 * h), LinearDefault(2 * h) } // of one layer over both
	states := recurrent.Attended(recurrent.AttendedArgs{
		X: linear(s, "decoder/words", from, c.dropout(words, d.Dropout), 3*h), Lengths: a.Lengths, Len: a.L,
		Keys:          linear(s, "attention/memory", attention, memory, h),
		Values:        linearNoBias(s, "decoder/memory", from, c.dropout(memory, d.Dropout), 3*h),
		MemoryLengths: a.ImageLengths, Memory: a.T, Query: s.Param("attention/state/weight", LinearDefault(2*h), h, h),
		Score:    s.Param("attention/score/weight", LinearDefault(h), h),
		WeightHH: s.Param("decoder/weight_hh", unit, 3*h, h), BiasHH: bias.Param("bias_hh", unit, 3*h),
		Start: recurrent.Last(memory, a.ImageLengths, a.T, false),
	}) // (R*L, H)
	return linear(s, "out", xavierNormal(d.Vocab), states, d.Vocab)
}
