package objectives

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// DecoderTargets is up to R texts that a decoder learns to write, each about one sample of the batch, with the right
// tokens before every token (teacher forcing). A fill of the step writes them.
type DecoderTargets struct {
	Places  int       // n, tokens that are read of a text at most
	Tokens  []int32   // (R*n) tokens that are read
	Next    []int32   // (R*n) the token behind each, -1 for none
	Weights []float32 // (R*n) of the terms of a text in the loss
	Lengths []int32   // (R) tokens that are read of a text
	Of      []int32   // (R) the sample
	Rows    int       // texts so far

	name    string
	numbers []int32 // (R) of the texts in the global batch, where this process is one of several
}

// NewDecoderTargets has room for so many texts of at most tokens tokens. The name is that of its inputs.
func NewDecoderTargets(name string, rows, tokens int) *DecoderTargets {
	n := max(1, tokens-1)
	return &DecoderTargets{name: name, Places: n, Tokens: make([]int32, rows*n), Next: make([]int32, rows*n),
		Weights: make([]float32, rows*n), Lengths: make([]int32, rows), Of: make([]int32, rows),
		numbers: make([]int32, rows)}
}

// Clear takes all texts away.
func (d *DecoderTargets) Clear() {
	d.Rows = 0
	clear(d.Tokens)
	clear(d.Weights)
	clear(d.Lengths)
	clear(d.Of)
	for i := range d.Next {
		d.Next[i] = -1
	}
}

// Number numbers the texts in the global batch, from that of the first on.
func (d *DecoderTargets) Number(first int) {
	for i := range d.numbers {
		d.numbers[i] = int32(first + i)
	}
}

// Add adds a text about sample i, whose tokens behind the first are to be written. With last >= 0 that token is written
// behind them.
func (d *DecoderTargets) Add(i int, text []int32, last int32, weight float32) {
	at := d.Rows * d.Places
	read := text
	if last < 0 {
		read = text[:max(0, len(text)-1)]
	}
	n := copy(d.Tokens[at:][:d.Places], read)
	m := copy(d.Next[at:][:n], text[min(1, len(text)):])
	if m < n {
		d.Next[at+m] = last
	}
	for k := range n {
		d.Weights[at+k] = weight
	}
	d.Lengths[d.Rows], d.Of[d.Rows] = int32(n), int32(i)
	d.Rows++
}

// DecoderStates are the states that the texts are about: those of the batch's samples, online and of the teacher,
// (B*Len, D) each. Teacher is nil without soft targets.
type DecoderStates struct {
	Online, Teacher *gorgonia.Node
	Lengths         *gorgonia.Node // (B) int32, states of a sample, the first ones; nil: all
	Len             int
}

// Loss returns the sum over all terms of
//
//	weight * ((1-alpha) * CE(next token) + alpha * H(softmax(teacher), softmax(logits)))
//
// as a scalar.
func (d *DecoderTargets) Loss(s *Step, decoder encoders.Decoder, x DecoderStates) *gorgonia.Node {
	ints := func(what string, values []int32) *gorgonia.Node {
		return s.SharedInts(d.name+" "+what, values, len(values))
	}
	of := ints("samples", d.Of)
	a := encoders.DecoderArgs{IDs: ints("tokens", d.Tokens), Lengths: ints("lengths", d.Lengths), Len: d.Places,
		States: x.Online, Index: of, StateLen: x.Len}
	if x.Lengths != nil {
		a.StateLengths = layout.GatherInts(x.Lengths, of)
	}
	if s.Ranks.Size() > 1 {
		at := ints("numbers", d.numbers)
		defer s.Student.Numbered(at)()
		if s.HasTeacher() {
			defer s.TeacherContext.Numbered(at)()
		}
	}
	averaged := encoders.Traits{Momentum: s.HasTeacher()}
	// (R*n, V)
	e := contrast.CrossEntropyArgs{Logits: decoder.Logits(s.Student, s.Params.As(averaged).In("decoder"), a),
		Labels: ints("next tokens", d.Next)}
	if x.Teacher != nil {
		a.States = x.Teacher
		e.Teacher, e.Alpha = decoder.Logits(s.TeacherContext, s.MomentumParams.As(averaged).In("decoder"), a), s.Alpha()
	}
	terms, n := contrast.CrossEntropyRows(e), len(d.Next)
	weights := s.SharedFloats(d.name+" weights", d.Weights, 1, n)
	return arith.Sum(arith.SumProducts(layout.Reshape(terms, 1, n), weights, 1))
}
