package objectives

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
)

// Captioning is the loss of a decoder that writes the caption of an image from the image's tokens (VSRN, Li et al.
// 2019, section 3.4), beside losses that match the two:
//
//	L = -1/B sum_i sum_t log p(w_it | w_i1 .. w_it-1, image i)
//
// over the tokens t > 1 of caption i, those that stand around its words included, with the right words before t
// (teacher forcing).
type Captioning struct {
	Weight  float64
	Decoder encoders.CaptionDecoder
	Len     int // L, token places of a caption in the batch
	Tokens  int // of a caption that take part, the first ones; 0: all
}

var _ Preparer = Captioning{}

// Prepare implements Preparer.
func (l Captioning) Prepare(s *Step) {
	s.Reads.Online.Image.Tokens = true
	s.Read(batch.Column{Name: batch.Tokens, Shape: []int{l.Len}, Type: batch.Int32},
		batch.Column{Name: batch.Lengths, Type: batch.Int32})
}

// most returns how many tokens of a caption take part at most.
func (l Captioning) most() int {
	if l.Tokens > 0 {
		return min(l.Len, l.Tokens)
	}
	return l.Len
}

// places returns how many of them are read: none follows the last.
func (l Captioning) places() int { return max(1, l.most()-1) }

// each calls f with the tokens of each caption that take part.
func (l Captioning) each(s *feed.Step, f func(i int, tokens []int32)) {
	tokens, most := s.Batch.Ints(batch.Tokens), l.most()
	for i, n := range s.Batch.Ints(batch.Lengths) {
		f(i, tokens[i*l.Len:][:min(int(n), most)])
	}
}

// Build implements Loss.
func (l Captioning) Build(s *Step) []Part {
	x, n := s.Online.Image, l.places()
	Need(x.Tokens != nil, "objective.captioning", "reads the tokens of images, which this model does not have")
	words := s.Ints("captioning words", func(f *feed.Step, dst []int32) error {
		clear(dst)
		l.each(f, func(i int, tokens []int32) { copy(dst[i*n:][:n], tokens) })
		return nil
	}, s.Rows*n)
	next := s.Ints("captioning next words", func(f *feed.Step, dst []int32) error {
		for i := range dst {
			dst[i] = -1
		}
		l.each(f, func(i int, tokens []int32) { copy(dst[i*n:], tokens[min(1, len(tokens)):]) })
		return nil
	}, s.Rows*n)
	lengths := s.Ints("captioning lengths", func(f *feed.Step, dst []int32) error {
		l.each(f, func(i int, tokens []int32) { dst[i] = int32(max(1, len(tokens)) - 1) })
		return nil
	}, s.Rows)
	mean := s.Floats("captioned words of an image", func(f *feed.Step, dst []float32) error {
		sum := 0
		l.each(f, func(_ int, tokens []int32) { sum += max(1, len(tokens)) - 1 })
		dst[0] = float32(sum) / float32(s.Rows)
		return nil
	})
	a := encoders.CaptionArgs{Images: x.Tokens, ImageLengths: x.Lengths, Words: words, Lengths: lengths, T: x.Len, L: n}
	if a.ImageLengths == nil {
		a.ImageLengths = s.Count("captioning places", x.Len, s.Rows, 0)
	}
	logits := l.Decoder.Logits(s.Student, s.Params.In("captioning"), a) // (B*n, V)
	return []Part{s.Part("captioning", l.Weight, arith.MulScalar(MaskedLM(logits, nil, next, nil), mean))}
}
