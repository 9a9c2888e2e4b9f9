package model

import (
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// reading is the compiled computation of what the decoder reads of a batch: keys and values of its cross-attention to the states
// of N sequences, once for all tokens that are written about them. Of questions there are as many as rows, of captions as many
// as images.
type reading struct {
	machine *exec.Machine
	inputs  *feed.Inputs
	images  []float32      // (K*T, D) tokens of images
	image   []int32        // (n) which of them each row has
	nodes   gorgonia.Nodes // of each layer (N*Len, 2D)
	n, len  int            // N and the states of a sequence

	keys    [][]float32 // the values of nodes
	of      []int32     // (n) the sequence of each row
	lengths []int32     // (N) states of a sequence that count
}

// errNoDecoder says that a model writes nothing.
var errNoDecoder = errors.New(`model: no decoder: it was trained without objective.vqa and without objective.captioning.decoder = "transformer"`)

// encodedAtOnce is how many images are encoded at a time for the decoder.
const encodedAtOnce = 16

// HasDecoder says whether the model has a decoder, which Rank and Generate need.
func (p *Pairs) HasDecoder() bool { return p.cfg.Writes() }

// answers says whether the decoder reads questions, else images.
func (p *Pairs) answers() bool { return p.cfg.Objective.VQA.Weight > 0 }

// ReadsQuestions says whether what is written about a row answers its text, else it describes its image alone.
func (p *Pairs) ReadsQuestions() bool { return p.answers() }

// DecoderColumns are the columns of a batch that Rank and Generate read.
func (p *Pairs) DecoderColumns() []batch.Column {
	if !p.answers() {
		return p.image.Columns()
	}
	return slices.Concat(p.image.Columns(), p.text.Columns())
}

// read computes what the decoder reads of the rows of b. Rows with the same image share its encoding.
func (p *Pairs) read(ctx context.Context, b *batch.Batch) (*reading, error) {
	switch {
	case !p.HasDecoder():
		return nil, errNoDecoder
	case b.Rows() < 1:
		return nil, errors.New("model: a batch to write about has no rows")
	}
	image, first := distinct(b, p.image.Columns())
	k := min(b.Rows(), 1<<bits.Len(uint(len(first)-1))) // few numbers to compile for
	x, err := p.reading(b.Rows(), k)
	if err != nil {
		return nil, err
	}
	copy(x.image, image)
	if err := p.encodeImages(ctx, b, first, x.images); err != nil {
		return nil, err
	}
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, err
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	for i, n := range x.nodes {
		v, err := x.machine.Value(n)
		if err != nil {
			return nil, err
		}
		x.keys[i] = v.F32
	}
	if p.answers() {
		copy(x.lengths, b.Ints(batch.Lengths))
	}
	return x, nil
}

// distinct numbers the rows of b that differ in one of the columns: it returns the number of each row, and the first row of
// each number.
func distinct(b *batch.Batch, columns []batch.Column) (number []int32, first []int) {
	same := func(i, j int) bool {
		for _, c := range columns {
			if !slices.Equal(b.Row(i).Floats(c.Name), b.Row(j).Floats(c.Name)) || !slices.Equal(b.Row(i).Ints(c.Name), b.Row(j).Ints(c.Name)) {
				return false
			}
		}
		return true
	}
	for i := range b.Rows() {
		at := slices.IndexFunc(first, func(j int) bool { return same(i, j) })
		if at < 0 {
			at, first = len(first), append(first, i)
		}
		number = append(number, int32(at))
	}
	return number, first
}

// encodeImages writes the tokens of the images of some rows of b to dst, one image after the other.
func (p *Pairs) encodeImages(ctx context.Context, b *batch.Batch, rows []int, dst []float32) error {
	size := p.image.Len() * p.image.Width()
	part := batch.New(min(b.Rows(), encodedAtOnce), p.image.Columns()...)
	for lo := 0; lo < len(rows); lo += part.Rows() {
		for i := range part.Rows() { // the last image fills the rest
			part.Row(i).Copy(b.Row(rows[min(lo+i, len(rows)-1)]))
		}
		states, _, err := p.image.Encode(ctx, part)
		if err != nil {
			return err
		}
		copy(dst[lo*size:], states[:min(part.Rows(), len(rows)-lo)*size])
	}
	return nil
}

// reading returns the computation for n rows with k images, built when it is first asked for.
func (p *Pairs) reading(n, k int) (x *reading, err error) {
	if x := p.readings[[2]int{n, k}]; x != nil {
		return x, nil
	}
	defer op.Catch(&err)
	b := newNet(p.params)
	on := encoders.NewScope(b.params).As(encoders.Traits{Twin: p.design.teacher})
	l, t, c := p.text.Len(), p.image.Len(), &encoders.Context{}
	x = &reading{inputs: b.inputs, images: make([]float32, k*t*p.image.Width()), image: make([]int32, n), of: make([]int32, n)}
	states := b.inputs.SharedFloats("image states", x.images, k*t, p.image.Width())
	if x.n, x.len = k, t; p.answers() {
		x.n, x.len = n, l
		tower := p.design.text.tower
		in := b.towerInputs(tower, n, nil)
		texts := tower.Encode(c, p.text.scope(on.In("text")), in, encoders.Want{Tokens: true})
		states = p.design.fusion.Fusion(c, tuned(p.cfg.Model, on.In("text"), c), encoders.FusionArgs{
			Texts: texts.Tokens, Lengths: in[batch.Lengths], Images: states, Pairs: encoders.Pairs{Images: b.inputs.SharedInts("images", x.image, n)},
			TextLen: l, ImageLen: t,
		}) // (n*L, D)
		for i := range x.of {
			x.of[i] = int32(i)
		}
	} else {
		x.of = x.image
	}
	x.nodes = newDecoder(p.cfg, p.o).Keys(on.In("decoder"), states)
	x.keys, x.lengths = make([][]float32, len(x.nodes)), make([]int32, x.n)
	for i := range x.lengths {
		x.lengths[i] = int32(x.len)
	}
	if x.machine, err = b.compileEval(exec.Config{Engine: p.engine}, x.nodes...); err != nil {
		return nil, err
	}
	if p.readings == nil {
		p.readings = map[[2]int]*reading{}
	}
	p.readings[[2]int{n, k}] = x
	return x, nil
}
