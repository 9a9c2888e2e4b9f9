package objectives

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// dictation is up to R texts that a decoder learns to write, each about one sample of the batch, with the right tokens
// before every token (teacher forcing). A fill of the step writes them.
type dictation struct {
	name    string
	places  int       // n, tokens that are read of a text at most
	tokens  []int32   // (R*n) tokens that are read
	next    []int32   // (R*n) the token behind each, -1 for none
	weights []float32 // (R*n) of the terms of a text in the loss
	lengths []int32   // (R) tokens that are read of a text
	of      []int32   // (R) the sample
	numbers []int32   // (R) of the texts in the global batch, where this process is one of several
	rows    int       // texts so far
}

// newDictation has room for so many texts of at most tokens tokens.
func newDictation(name string, rows, tokens int) *dictation {
	n := max(1, tokens-1)
	return &dictation{name: name, places: n, tokens: make([]int32, rows*n), next: make([]int32, rows*n),
		weights: make([]float32, rows*n), lengths: make([]int32, rows), of: make([]int32, rows),
		numbers: make([]int32, rows)}
}

// clear takes all texts away.
func (d *dictation) clear() {
	d.rows = 0
	clear(d.tokens)
	clear(d.weights)
	clear(d.lengths)
	clear(d.of)
	for i := range d.next {
		d.next[i] = -1
	}
}

// number numbers the texts in the global batch, from that of the first on.
func (d *dictation) number(first int) {
	for i := range d.numbers {
		d.numbers[i] = int32(first + i)
	}
}

// add adds a text about sample i, whose tokens behind the first are to be written. With last >= 0 that token is written
// behind them.
func (d *dictation) add(i int, text []int32, last int32, weight float32) {
	at := d.rows * d.places
	read := text
	if last < 0 {
		read = text[:max(0, len(text)-1)]
	}
	n := copy(d.tokens[at:][:d.places], read)
	m := copy(d.next[at:][:n], text[min(1, len(text)):])
	if m < n {
		d.next[at+m] = last
	}
	for k := range n {
		d.weights[at+k] = weight
	}
	d.lengths[d.rows], d.of[d.rows] = int32(n), int32(i)
	d.rows++
}

// told are the states that the texts are about: those of the batch's samples, online and of the teacher, (B*Len, D)
// each. Teacher is nil without soft targets.
type told struct {
	Online, Teacher *gorgonia.Node
	Lengths         *gorgonia.Node // (B) int32, states of a sample, the first ones; nil: all
	Len             int
}

// loss returns the sum over all terms of
//
//	weight * ((1-alpha) * CE(next token) + alpha * H(softmax(teacher), softmax(logits)))
//
// as a scalar.
func (d *dictation) loss(s *Step, decoder encoders.Decoder, x told) *gorgonia.Node {
	ints := func(what string, values []int32) *gorgonia.Node {
		return s.SharedInts(d.name+" "+what, values, len(values))
	}
	of := ints("samples", d.of)
	a := encoders.DecoderArgs{IDs: ints("tokens", d.tokens), Lengths: ints("lengths", d.lengths), Len: d.places,
		States: x.Online, Index: of, StateLen: x.Len}
	if x.Lengths != nil {
		a.StateLengths = layout.GatherInts(x.Lengths, of)
	}
	if s.Ranks.size() > 1 {
		at := ints("numbers", d.numbers)
		defer s.Student.Numbered(at)()
		if s.HasTeacher() {
			defer s.TeacherContext.Numbered(at)()
		}
	}
	averaged := encoders.Traits{Momentum: s.HasTeacher()}
	// (R*n, V)
	e := contrast.CrossEntropyArgs{Logits: decoder.Logits(s.Student, s.Params.As(averaged).In("decoder"), a),
		Labels: ints("next tokens", d.next)}
	if x.Teacher != nil {
		a.States = x.Teacher
		e.Teacher, e.Alpha = decoder.Logits(s.TeacherContext, s.MomentumParams.As(averaged).In("decoder"), a), s.Alpha()
	}
	terms, n := contrast.CrossEntropyRows(e), len(d.next)
	weights := s.SharedFloats(d.name+" weights", d.weights, 1, n)
	return arith.Sum(arith.SumProducts(layout.Reshape(terms, 1, n), weights, 1))
}
