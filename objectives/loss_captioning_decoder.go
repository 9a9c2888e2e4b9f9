package objectives

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
)

// CaptioningByDecoder is Captioning by the decoder of VQA, which reads the tokens of the image, with momentum
// distillation where there is a teacher:
//
//	L = 1/B sum_i sum_t (1-alpha) CE(token t+1 of caption i) + alpha H(teacher, token t+1)
type CaptioningByDecoder struct {
	Weight  float64
	Decoder encoders.Decoder
	Len     int   // L, token places of a caption in the batch
	Tokens  int   // of a caption that take part, the first ones; 0: all
	Last    int32 // token that ends a caption; -1: its last token does
}

var _ Preparer = CaptioningByDecoder{}

// Prepare implements Preparer.
func (l CaptioningByDecoder) Prepare(s *Step) {
	for _, r := range s.distilled() {
		r.Image.Tokens = true
	}
	s.Read(batch.Column{Name: batch.Tokens, Shape: []int{l.Len}, Type: batch.Int32},
		batch.Column{Name: batch.Lengths, Type: batch.Int32})
}

// Build implements Loss.
func (l CaptioningByDecoder) Build(s *Step) []Part {
	most := l.Len
	if l.Tokens > 0 {
		most = min(most, l.Tokens)
	}
	room := most
	if l.Last >= 0 {
		room++
	}
	d := newDictation("caption", s.Rows, room)
	s.OnFill(func(f *feed.Step) error {
		d.clear()
		d.number(s.Rows * s.Ranks.rank())
		tokens := f.Batch.Ints(batch.Tokens)
		for i, n := range f.Batch.Ints(batch.Lengths) {
			d.add(i, tokens[i*l.Len:][:min(int(n), most)], l.Last, 1/float32(s.Rows))
		}
		return nil
	})
	image := s.Online.Image
	Need(image.Tokens != nil, "objective.captioning", "reads the tokens of images, which this model does not have")
	x := told{Online: image.Tokens, Lengths: image.Lengths, Len: image.Len}
	if s.Alpha() != nil {
		x.Teacher = s.Teacher.Image.Tokens
	}
	return []Part{s.Part("captioning", l.Weight, d.loss(s, l.Decoder, x))}
}
