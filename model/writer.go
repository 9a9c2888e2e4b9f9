package model

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// Writer is the decoder of a model: it ranks texts about the rows of a batch and generates them.
type Writer struct {
	m      *Model
	states program[statesKey, *decoderStates]
	tokens program[tokensKey, *nextTokens]
	maps   program[textsKey, *heatMaps]
}

// newWriter returns that of the configuration of m, nil without one.
func newWriter(m *Model) *Writer {
	if !m.cfg.Writes() {
		return nil
	}
	w := &Writer{m: m}
	w.states = program[statesKey, *decoderStates]{m: m, build: w.buildStates}
	w.tokens = program[tokensKey, *nextTokens]{m: m, build: w.buildTokens}
	w.maps = program[textsKey, *heatMaps]{m: m, build: w.buildMaps}
	m.programs = append(m.programs, &w.states, &w.tokens, &w.maps)
	return w
}

// ReadsQuestions says whether a text about a row answers its text, else it describes its image alone.
func (w *Writer) ReadsQuestions() bool { return w.m.cfg.Objective.VQA.Weight > 0 }

// Columns are the columns of a batch that the decoder reads.
func (w *Writer) Columns() []batch.Column {
	if !w.ReadsQuestions() {
		return w.m.image.Columns()
	}
	return slices.Concat(w.m.image.Columns(), w.m.text.Columns())
}

// statesKey is numbers of rows and of different images among them.
type statesKey struct{ rows, images int }

// decoderStates is the compiled computation of what the decoder reads of a batch: keys and values of its
// cross-attention to the states of N sequences, once for all tokens of the texts about them. Of questions there are as
// many as rows, of captions as many as images.
type decoderStates struct {
	computation
	images []float32      // (K*T, D) tokens of images
	image  []int32        // (n) which of them each row has
	nodes  gorgonia.Nodes // of each layer (N*Len, 2D)
	n, len int            // N and the states of a sequence

	keys    [][]float32 // the values of nodes
	of      []int32     // (n) the sequence of each row
	lengths []int32     // (N) states of a sequence that count
}

// encodedAtOnce is how many images are encoded at a time for the decoder.
const encodedAtOnce = 16

// read computes what the decoder reads of the rows of b. Rows with the same image share its encoding.
func (w *Writer) read(ctx context.Context, b *batch.Batch) (*decoderStates, error) {
	if b.Rows() < 1 {
		return nil, errors.New("model: a batch to write about has no rows")
	}
	image, first := distinct(b, w.m.image.Columns())
	k := min(b.Rows(), 1<<bits.Len(uint(len(first)-1))) // few numbers to compile for
	x, err := w.states.get(statesKey{b.Rows(), k})
	if err != nil {
		return nil, err
	}
	copy(x.image, image)
	if err := w.encodeImages(ctx, b, first, x.images); err != nil {
		return nil, err
	}
	if err := x.run(ctx, b); err != nil {
		return nil, err
	}
	o := outputs{machine: x.machine}
	for i, n := range x.nodes {
		x.keys[i] = o.floats(n)
	}
	if w.ReadsQuestions() {
		copy(x.lengths, b.Ints(batch.Lengths))
	}
	return x, o.err
}

// distinct numbers the rows of b that differ in one of the columns: it returns the number of each row, and the first
// row of each number.
func distinct(b *batch.Batch, columns []batch.Column) (number []int32, first []int) {
	same := func(i, j int) bool {
		x, y := b.Row(i), b.Row(j)
		return !slices.ContainsFunc(columns, func(c batch.Column) bool {
			return !slices.Equal(x.Floats(c.Name), y.Floats(c.Name)) || !slices.Equal(x.Ints(c.Name), y.Ints(c.Name))
		})
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
func (w *Writer) encodeImages(ctx context.Context, b *batch.Batch, rows []int, dst []float32) error {
	image := w.m.image
	size := image.Len() * image.Width()
	part := batch.New(min(b.Rows(), encodedAtOnce), image.Columns()...)
	for lo := 0; lo < len(rows); lo += part.Rows() {
		for i := range part.Rows() { // the last image fills the rest
			part.Row(i).Copy(b.Row(rows[min(lo+i, len(rows)-1)]))
		}
		states, _, err := image.Encode(ctx, part)
		if err != nil {
			return err
		}
		copy(dst[lo*size:], states[:min(part.Rows(), len(rows)-lo)*size])
	}
	return nil
}

// buildStates adds what the decoder reads of rows with some images to a computation.
func (w *Writer) buildStates(of statesKey, n *net) (*decoderStates, gorgonia.Nodes, error) {
	m := w.m
	k, l, t := of.images, m.text.Len(), m.image.Len()
	x := &decoderStates{images: make([]float32, k*t*m.image.Width()), image: make([]int32, of.rows),
		of: make([]int32, of.rows)}
	states := n.inputs.SharedFloats("image states", x.images, k*t, m.image.Width())
	if x.n, x.len = k, t; w.ReadsQuestions() {
		x.n, x.len = of.rows, l
		texts := m.text.encode(n, of.rows, encoders.Tap{}, encoders.Want{Tokens: true})
		states = m.fuse(n, encoders.Tap{}, encoders.FusionArgs{
			Texts: texts.Tokens, Lengths: texts.Lengths, Images: states,
			Pairs: encoders.Pairs{Images: n.inputs.SharedInts("images", x.image, of.rows)}, TextLen: l, ImageLen: t,
		}) // (n*L, D)
		for i := range x.of {
			x.of[i] = int32(i)
		}
	} else {
		x.of = x.image
	}
	x.nodes = newHost(m.cfg, m.o).Decoder().Keys(n.root().In("decoder"), states)
	x.keys, x.lengths = make([][]float32, len(x.nodes)), slices.Repeat([]int32{int32(x.len)}, x.n)
	return x, x.nodes, nil
}

// tokensKey is what the next tokens are compiled for.
type tokensKey struct {
	sequences int // that the decoder reads
	rows      int // tokens at a time
	past      int // others before them at most
	places    int // in the cache
}

// nextTokens is the compiled computation of the next token of R texts. Keys and values of tokens that have been read
// lie in a cache, of whose places each token names those of the tokens before it: texts that begin alike share them.
type nextTokens struct {
	computation
	tokensKey
	m      *Model
	read   *decoderStates // of the batch
	logits *gorgonia.Node
	own    gorgonia.Nodes // of each layer (R, 2D)
	states gorgonia.Nodes // of each layer (N*T, 2D), inputs

	ids, positions, of, lengths, seen, before []int32     // inputs, (R) each, before (R*past)
	cache                                     [][]float32 // of each layer (C, 2D)
	width                                     int         // 2D
}

// token is a token that is read next.
type token struct {
	id     int32
	row    int     // of the batch
	before []int32 // places in the cache of the tokens before it
	place  int     // where its keys and values go, -1: nowhere
}

// next returns the computation for rows tokens at a time behind at most past others with so many places in the cache,
// on what was read of a batch.
func (w *Writer) next(r *decoderStates, rows, past, places int) (*nextTokens, error) {
	x, err := w.tokens.get(tokensKey{r.n, rows, past, places})
	if err != nil {
		return nil, err
	}
	x.read = r
	for i, n := range x.states {
		if err := x.machine.SetInput(n, r.keys[i]); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// buildTokens adds the next tokens of texts to a computation.
func (w *Writer) buildTokens(of tokensKey, n *net) (*nextTokens, gorgonia.Nodes, error) {
	d, stateLen := newHost(w.m.cfg, w.m.o).Decoder(), w.m.image.Len()
	if w.ReadsQuestions() {
		stateLen = w.m.text.Len()
	}
	x := &nextTokens{m: w.m, tokensKey: of, width: 2 * d.Width}
	ints := func(name string, memory *[]int32, size int) *gorgonia.Node {
		*memory = make([]int32, size)
		return n.inputs.SharedInts(name, *memory, size)
	}
	rows := of.rows
	a := encoders.NextArgs{
		IDs: ints("tokens", &x.ids, rows), Positions: ints("positions", &x.positions, rows),
		Before: ints("before", &x.before, rows*of.past), Seen: ints("seen", &x.seen, rows), PastLen: of.past,
		Index: ints("sequence", &x.of, rows), StateLengths: ints("state lengths", &x.lengths, rows), StateLen: stateLen,
	}
	for i := range d.FusionLayers {
		x.cache = append(x.cache, make([]float32, of.places*x.width))
		a.Past = append(a.Past, n.inputs.SharedFloats(fmt.Sprintf("past %d", i), x.cache[i], of.places, x.width))
		states := n.inputs.Unbound(fmt.Sprintf("states %d", i), batch.Float32, of.sequences*stateLen, x.width)
		a.Keys = append(a.Keys, states)
	}
	x.states = a.Keys
	x.logits, x.own = d.Next(n.root().In("decoder"), a)
	return x, append(gorgonia.Nodes{x.logits}, x.own...), nil
}

// each reads tokens, and calls visit with the number of each and the logits (V) of the token behind it, on several
// threads.
func (x *nextTokens) each(ctx context.Context, tokens []token, visit func(i int, logits []float32)) error {
	for lo := 0; lo < len(tokens); lo += x.rows {
		part := tokens[lo:min(lo+x.rows, len(tokens))]
		x.set(part)
		if err := x.machine.Run(ctx); err != nil {
			return err
		}
		o := outputs{machine: x.machine}
		x.remember(&o, part)
		logits := o.of(x.logits)
		if o.err != nil {
			return o.err
		}
		v := logits.Dim(1)
		x.m.engine.For(len(part), 1, func(_, from, to int) {
			for i := from; i < to; i++ {
				visit(lo+i, logits.F32[i*v:(i+1)*v])
			}
		})
	}
	return nil
}

// set writes the inputs for tokens; the rest of the rows reads the first token that there is.
func (x *nextTokens) set(tokens []token) {
	for i := range x.rows {
		t := token{place: -1}
		if i < len(tokens) {
			t = tokens[i]
		}
		x.ids[i], x.positions[i], x.seen[i] = t.id, int32(len(t.before)), int32(1+len(t.before))
		x.of[i] = x.read.of[t.row]
		x.lengths[i] = x.read.lengths[x.of[i]]
		before := x.before[i*x.past:][:x.past]
		clear(before[copy(before, t.before):])
	}
}

// remember puts the keys and values of tokens into the cache.
func (x *nextTokens) remember(o *outputs, tokens []token) {
	for layer, n := range x.own {
		values := o.floats(n)
		for i, t := range tokens {
			if t.place >= 0 && o.err == nil {
				copy(x.cache[layer][t.place*x.width:][:x.width], values[i*x.width:])
			}
		}
	}
}

// textsKey is a number of texts, and of tokens that are read of each.
type textsKey struct{ rows, len int }

// textsToRead is the input of Writer.HeatMaps: of n texts the tokens that are read (n*len), the token behind each, -1
// for none, and how many are read of a text (n).
type textsToRead struct {
	len                   int
	tokens, next, lengths []int32
}

// set makes texts the input, of which all tokens but the last are read.
func (x *textsToRead) set(texts [][]int32) {
	clear(x.tokens)
	for i := range x.next {
		x.next[i] = -1
	}
	for i, text := range texts {
		n := len(text) - 1
		copy(x.tokens[i*x.len:], text[:n])
		copy(x.next[i*x.len:], text[1:])
		x.lengths[i] = int32(n)
	}
}

// HasHeatMaps says whether HeatMaps has maps.
func (w *Writer) HasHeatMaps() bool { return w.m.hasPatches() }

// HeatMaps returns for each of the n rows of b (Columns) what the P patches of its image add to a text about it, (n,
// P), by the log-probability of the text. Texts are as Ranker has them, with the tokens that stand around their words.
// The map is that of Explainer.HeatMaps in the layer in the middle: of an answer, of the question's words within the
// fusion layers; of a caption, of its own tokens within the decoder. A computation is kept for every number of rows and
// every power of two that lengths lie below: call it with few different ones. It ends early with the error of ctx.
func (w *Writer) HeatMaps(ctx context.Context, b *batch.Batch, texts [][]int32) ([]float32, error) {
	n := b.Rows()
	if len(texts) != n {
		return nil, fmt.Errorf("model: heat maps of %d rows need a text for each (got %d)", n, len(texts))
	}
	longest, most := 0, w.m.cfg.Model.Text.Positions
	for i, text := range texts {
		if len(text) < 2 || len(text)-1 > most {
			return nil, fmt.Errorf("model: text %d has %d tokens: want those around its words, and at most model.text.positions = %d "+
				"behind the first", i, len(text), most)
		}
		longest = max(longest, len(text)-1)
	}
	x, err := w.maps.get(textsKey{n, min(most, 1<<bits.Len(uint(longest-1)))})
	if err != nil {
		return nil, err
	}
	x.text.set(texts)
	return x.values(ctx, w.m, b)
}

// buildMaps adds the sum of the log-probabilities of texts to a computation, with what heat maps are made of.
func (w *Writer) buildMaps(of textsKey, n *net) (*heatMaps, gorgonia.Nodes, error) {
	rows, size := of.rows, of.rows*of.len
	return newHeatMaps(w.m, rows, func(x *heatMaps) *gorgonia.Node {
		t := &textsToRead{len: of.len, tokens: make([]int32, size), next: make([]int32, size),
			lengths: make([]int32, rows)}
		x.text = t
		return x.ofTexts(w, n, rows)
	})
}

// ofTexts builds the sum of the log-probabilities of texts about so many rows.
func (x *heatMaps) ofTexts(w *Writer, n *net, rows int) *gorgonia.Node {
	m, t, decoder := w.m, x.text, newHost(w.m.cfg, w.m.o).Decoder()
	image := m.image.encode(n, rows, encoders.Tap{}, encoders.Want{Tokens: true})
	tap := x.attention(decoder.BERT, rows, (decoder.FusionLayers-1)/2, 1, image.Len)
	ints := func(name string, values []int32) *gorgonia.Node {
		return n.inputs.SharedInts("text "+name, values, len(values))
	}
	x.lengths = ints("lengths", t.lengths)
	a := encoders.DecoderArgs{IDs: ints("tokens", t.tokens), Lengths: x.lengths, Len: t.len, States: image.Tokens,
		StateLen: image.Len}
	scope := n.root().In("decoder")
	if w.ReadsQuestions() {
		text := m.text.encode(n, rows, encoders.Tap{}, encoders.Want{Tokens: true})
		a.States = m.fuse(n, tap, encoders.FusionArgs{
			Texts: text.Tokens, Lengths: text.Lengths, Images: image.Tokens, TextLen: text.Len, ImageLen: image.Len,
		}) // (n*L, D)
		a.StateLengths, a.StateLen, x.lengths = text.Lengths, text.Len, text.Lengths
	} else {
		scope = scope.Tapped(tap)
	}
	logits := decoder.Logits(&encoders.Context{}, scope, a) // (n*len, V)
	rowLoss := contrast.CrossEntropyRows(contrast.CrossEntropyArgs{Logits: logits, Labels: ints("next tokens", t.next)})
	return arith.Combine([]float32{-1}, arith.Sum(rowLoss))
}
