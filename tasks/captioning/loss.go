package captioning

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"gorgonia.org/gorgonia"
)

// Loss is the loss of a decoder that writes the caption of an image from its regions or patches, as VSRN has it beside
// the loss that matches (Li et al. 2019, section 3.4): the sum over the words of a caption, the mean over the batch.
//
//	L = -1/B sum_i sum_t log p(w_it | w_i1 .. w_it-1, image i)
//
// over the tokens t > 1 of caption i, those that stand around its words included, with the right words before t
// (teacher forcing). The transformer learns from the teacher too, where there is one (momentum distillation):
//
//	L = 1/B sum_i sum_t (1-alpha) CE(token t+1 of caption i) + alpha H(teacher, token t+1)
type Loss struct {
	// of the loss in the total, 1 in VSRN; 0: off
	section.Weighted
	// gru (recurrent units, VSRN's) | transformer (the decoder of objective.vqa over the tokens of the image, with
	// model.text.fusion_layers layers)
	Decoder string `toml:"decoder" fixed:"model"`
	// of the recurrent units that read the image and write the caption
	Width int `toml:"width" when:"decoder=gru" fixed:"model" max:"65536"`
	// channels of a word that the decoder reads
	Embedding int `toml:"embedding" when:"decoder=gru" fixed:"model" max:"65536"`
	// of what the recurrent units read
	Dropout float64 `toml:"dropout" when:"decoder=gru"`
	// of a caption that take part, the first ones, with those that stand around its words; 0: all
	Tokens int `toml:"tokens" max:"65536"`
}

// Values of objective.captioning.decoder.
const (
	GRU         = "gru"
	Transformer = "transformer"
)

var _ objectives.Preparer = (*Loss)(nil)

// Defaults implements section.Defaulter.
func (l *Loss) Defaults() {
	*l = Loss{Decoder: GRU, Width: 512, Embedding: 512, Dropout: 0.2, Tokens: 28}
}

// Gives implements section.Giver.
func (l *Loss) Gives() []section.Fact {
	list := []section.Fact{section.BatchImages, section.States, section.AllPatches}
	switch {
	case l.Decoder == Transformer:
		return append(list, section.FusedPairs, section.Soft, section.Downstream, section.Decoder)
	case l.Dropout > 0:
		return append(list, section.Beside, section.Dropout)
	}
	return append(list, section.Beside)
}

// Recurs says whether captions are written by recurrent units.
func (l *Loss) Recurs() bool { return l.On() && l.Decoder != Transformer }

// Needs implements section.Needer.
func (l *Loss) Needs() []section.Fact { return []section.Fact{section.Captions, section.Words} }

// Check implements section.Checked.
func (l *Loss) Check(k *section.Checker) {
	k.NotNegative("tokens")
	k.Positive("width", "embedding")
	k.Require("dropout", l.Dropout >= 0 && l.Dropout < 1, "must be at least 0 and below 1")
	k.Require("tokens", l.Tokens != 1, "must be at least 2, or 0", "the first token of a caption is given")
	k.OneOf("decoder", GRU, Transformer)
	cached := k.Value("data.cache_features").(bool) && k.Value("model.image.freeze").(bool)
	k.Training("weight", l.Weight == 0 || !cached, "must be 0 with data.cache_features and model.image.freeze",
		"the tokens of images are not kept")
}

// Prepare implements objectives.Preparer.
func (l *Loss) Prepare(s *objectives.Step) {
	reads := []*objectives.SideReads{&s.Reads.Online}
	if l.Decoder == Transformer {
		reads = s.Distilled()
	}
	for _, r := range reads {
		r.Image.Tokens = true
	}
	s.Read(batch.Column{Name: batch.Tokens, Shape: []int{places(s)}, Type: batch.Int32},
		batch.Column{Name: batch.Lengths, Type: batch.Int32})
}

// places are the token places of a caption in the batch.
func places(s *objectives.Step) int { return section.Of[source.Data](s.Config).Tokens }

// most returns how many tokens of a caption take part at most, of so many places.
func (l *Loss) most(places int) int {
	if l.Tokens > 0 {
		return min(places, l.Tokens)
	}
	return places
}

// each calls f with the tokens of each caption that take part.
func (l *Loss) each(s *feed.Step, f func(i int, tokens []int32)) {
	tokens, lengths := s.Batch.Ints(batch.Tokens), s.Batch.Ints(batch.Lengths)
	places := len(tokens) / len(lengths)
	for i, n := range lengths {
		f(i, tokens[i*places:][:min(int(n), l.most(places))])
	}
}

// Build implements objectives.Loss.
func (l *Loss) Build(s *objectives.Step) []objectives.Part {
	objectives.Need(s.Online.Image.Tokens != nil, "objective.captioning",
		"reads the tokens of images, which this model does not have")
	build := l.recurrent
	if l.Decoder == Transformer {
		build = l.transformer
	}
	return []objectives.Part{s.Part(Name, l.Weight, build(s))}
}

// transformer is the loss of the decoder of the fusion layers.
func (l *Loss) transformer(s *objectives.Step) *gorgonia.Node {
	room, image := l.most(places(s)), s.Online.Image
	if s.Words.End >= 0 {
		room++
	}
	d := objectives.NewDecoderTargets("caption", s.Rows, room)
	s.OnFill(func(f *feed.Step) error {
		d.Clear()
		d.Number(s.Rows * s.Ranks.Rank())
		l.each(f, func(i int, tokens []int32) { d.Add(i, tokens, s.Words.End, 1/float32(s.Rows)) })
		return nil
	})
	x := objectives.DecoderStates{Online: image.Tokens, Lengths: image.Lengths, Len: image.Len}
	if s.Alpha() != nil {
		x.Teacher = s.Teacher.Image.Tokens
	}
	return d.Loss(s, s.Decoder(), x)
}

// recurrent is the loss of recurrent units.
func (l *Loss) recurrent(s *objectives.Step) *gorgonia.Node {
	x, n := s.Online.Image, max(1, l.most(places(s))-1) // nothing follows the last token
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
	d := encoders.CaptionDecoder{Vocab: s.Words.Vocab, Width: l.Width, Embedding: l.Embedding, Dropout: l.Dropout}
	logits := d.Logits(s.Student, s.Params.In(Name), a) // (B*n, V)
	return arith.MulScalar(objectives.MaskedLM(logits, nil, next, nil), mean)
}
