package encoders

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TextEncoder is a transformer over token ids.
type TextEncoder interface {
	// Text encodes R texts into (R*L, D), or with at into the states at M places alone, (M, D).
	Text(c *Context, s Scope, a TextArgs, at *Places) *gorgonia.Node
	// TextClasses encodes R texts with m class tokens: classes (R*m, D), and with all also
	// states (R*L, D).
	TextClasses(c *Context, s Scope, a TextArgs, all bool) (states, classes *gorgonia.Node)
	classes() int
	width() int
}

// TextTower is a text transformer as a tower.
type TextTower struct {
	Encoder TextEncoder
	Tokens  int // L, token places of a text
	// Pool says what stands for a text; empty: its class tokens. The others are of one token.
	Pool Pool
	// Padding: padding is read like words, as SigLIP does, and the last place of a text is the
	// last of its places. Lengths are those of its words all the same.
	Padding bool
	// Segments: a token has one of two types, as the column batch.Segments says; else all have the first.
	Segments bool
	// Begin and End are the tokens that stand around the words of every text, such as [CLS].
	Begin, End int
}

var _ Shorter = TextTower{}

// Columns are the ids of a text, (L), how many of them are no padding, and their types with Segments.
func (t TextTower) Columns() []batch.Column {
	list := []batch.Column{
		{Name: batch.Tokens, Shape: []int{t.Tokens}, Type: batch.Int32},
		{Name: batch.Lengths, Type: batch.Int32},
	}
	if t.Segments {
		list = append(list, batch.Column{Name: batch.Segments, Shape: []int{t.Tokens}, Type: batch.Int32})
	}
	return list
}

// Shortens says whether padding is not read.
func (t TextTower) Shortens() bool { return !t.Padding }

// Shorter returns the tower with l places.
func (t TextTower) Shorter(l int) Tower {
	t.Tokens = l
	return t
}

// Classes returns m.
func (t TextTower) Classes() int { return t.Encoder.classes() }

// Shape returns the tokens of a row and their width.
func (t TextTower) Shape() (length, width int) { return t.Tokens, t.Encoder.width() }

// FirstIsClass says whether the first token of a text is all that stands for it.
func (t TextTower) FirstIsClass() bool { return t.Pool.byClass() && t.Classes() == 1 }

// Encode encodes R texts. With tokens alone a text has one class token, whatever Classes
// says; without tokens the last layer computes no query but those of what is read.
func (t TextTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	q := Sequence{Lengths: in[batch.Lengths], Len: t.Tokens, Width: t.Encoder.width(), Begin: t.Begin, End: t.End}
	a := TextArgs{IDs: in[batch.Tokens], Lengths: q.Lengths, Len: t.Tokens}
	if t.Segments {
		if _, ok := t.Encoder.(BERT); !ok {
			misuse("text", a.IDs, "types of tokens are those of BERT")
		}
		a.Segments = in[batch.Segments]
	}
	if t.Padding {
		a.Lengths = nil
	}
	switch {
	case !want.Classes:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
	case t.Pool.byClass():
		q.Tokens, q.Classes = t.Encoder.TextClasses(c, s, a, want.Tokens)
	case t.Pool == PoolPooler:
		q.Tokens, q.Classes = t.Encoder.TextClasses(c, s, a, want.Tokens)
		q.Classes = nn.Tanh(linear(s, "pooler", from(bertInit), q.Classes, q.Width)) // (R, D)
	case t.Pool == PoolMean:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
		q.Classes = meanWords(s.tap.pooled(q.Tokens, q.Len), q.Lengths, q.Len)
	case t.Pool == PoolFirstLast:
		b, ok := t.Encoder.(BERT)
		if !ok {
			misuse("text", a.IDs, "pool %q reads layers of BERT", t.Pool)
		}
		var first *gorgonia.Node
		first, q.Tokens = b.firstLast(c, s, a)
		q.Classes = meanWords(arith.Combine([]float32{.5, .5}, first, s.tap.pooled(q.Tokens, q.Len)), q.Lengths, q.Len)
	case t.Pool == PoolMax || t.Pool == PoolGPO || t.Pool == PoolESA:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
		q.Classes = t.Pool.of(s, s.tap.pooled(q.Tokens, q.Len), q.Lengths, q.Len)
	case t.Pool == PoolEnd && t.recurrent():
		q.Tokens, q.Classes = t.Encoder.(GRU).ends(c, s, a)
	case t.Pool == PoolEnd && want.Tokens:
		q.Tokens = t.Encoder.Text(c, s, a, nil)
		q.Classes = t.last(a).of(q.Tokens)
	case t.Pool == PoolEnd:
		q.Classes = t.Encoder.Text(c, s, a, t.last(a))
	default:
		misuse("text", a.IDs, "pool must be class, pooler, mean, first_last, max, gpo, esa or end (got %q)", t.Pool)
	}
	if t.Classes() > 1 && !t.Pool.byClass() {
		misuse("text", a.IDs, "pool %q goes with one class token (got %d)", t.Pool, t.Classes())
	}
	if !want.Tokens {
		q.Tokens = nil
	}
	return q
}

// recurrent says whether the last states of a text are more than the state at one place.
func (t TextTower) recurrent() bool {
	_, ok := t.Encoder.(GRU)
	return ok
}

// last are the last places of texts.
func (t TextTower) last(a TextArgs) *Places {
	lengths := a.Lengths
	if lengths == nil {
		lengths = layout.FullLengths(a.IDs, a.Len)
	}
	return lastPlaces(lengths, a.Len)
}
