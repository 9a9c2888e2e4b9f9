package data

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
)

// Tokenizer is what columns of text need of a tokenizer (package data/tokenizer).
type Tokenizer interface {
	// Encode returns the ids of text with what stands around it, at most maxTokens (0: all).
	Encode(text string, maxTokens int) []int32
	// PadID is the id that shorter texts are padded with.
	PadID() int32
}

// Texts turns captions into the columns batch.Tokens and batch.Lengths. nil gives no
// columns and fills none.
type Texts struct {
	Tokenizer Tokenizer
	Tokens    int // token positions of a text, L
	// Prompt stands before every text, such as "query: "; empty: nothing does.
	Prompt string
}

// check says what is wrong with t.
func (t *Texts) check() error {
	switch {
	case t == nil:
		return nil
	case t.Tokenizer == nil:
		return fmt.Errorf("data: columns of text need a tokenizer")
	case t.Tokens <= 0:
		return fmt.Errorf("data: tokens must be > 0 (got %d)", t.Tokens)
	}
	return nil
}

// Columns are the tokens (L) of a text and their number.
func (t *Texts) Columns() []Column { return t.TextColumns(batch.OwnText) }

// TextColumns are Columns of a text of a row, none where t is nil.
func (t *Texts) TextColumns(of batch.Text) []Column {
	if t == nil {
		return nil
	}
	return []Column{
		{Name: of.Tokens, Shape: []int{t.Tokens}, Type: batch.Int32},
		{Name: of.Lengths, Type: batch.Int32},
	}
}

// Fill writes the columns of text that row has: the ids, padded, and how many they
// are.
func (t *Texts) Fill(text string, row batch.Row) { t.FillText(text, row, batch.OwnText) }

// FillText is Fill for the columns of a text of a row, which TextColumns are.
func (t *Texts) FillText(text string, row batch.Row, of batch.Text) {
	tokens, lengths := row.Ints(of.Tokens), row.Ints(of.Lengths)
	if t == nil || tokens == nil && lengths == nil {
		return
	}
	ids := t.Tokenizer.Encode(t.Prompt+text, t.Tokens)
	rest := tokens[copy(tokens, ids):]
	for i, pad := 0, t.Tokenizer.PadID(); i < len(rest); i++ {
		rest[i] = pad
	}
	row.Set(of.Lengths, int32(min(len(ids), t.Tokens)))
}

// PairTokenizer is a Tokenizer that makes one text of two.
type PairTokenizer interface {
	Tokenizer
	// HasPairs is an error where the vocabulary has nothing to stand between two texts.
	HasPairs() error
	// EncodePair returns the ids of both, at most maxTokens, and how many of them belong to the first.
	EncodePair(a, b string, maxTokens int) (ids []int32, first int)
}

// CheckPairs says why the tokenizer of t makes no text of two, nil where it does or t is nil.
func (t *Texts) CheckPairs() error {
	if t == nil {
		return nil
	}
	p, ok := t.Tokenizer.(PairTokenizer)
	if !ok {
		return fmt.Errorf("data: %T makes no text of two", t.Tokenizer)
	}
	return p.HasPairs()
}

// JointColumns are Columns of two texts in one, with batch.Segments.
func (t *Texts) JointColumns() []Column {
	if t == nil {
		return nil
	}
	return append(t.Columns(), Column{Name: batch.Segments, Shape: []int{t.Tokens}, Type: batch.Int32})
}

// FillJoint is Fill for JointColumns. CheckPairs must have said nothing.
func (t *Texts) FillJoint(a, b string, row batch.Row) {
	tokens, segments := row.Ints(batch.Tokens), row.Ints(batch.Segments)
	if t == nil || tokens == nil && segments == nil && row.Ints(batch.Lengths) == nil {
		return
	}
	ids, first := t.Tokenizer.(PairTokenizer).EncodePair(a, b, t.Tokens)
	for i := range tokens {
		if tokens[i] = t.Tokenizer.PadID(); i < len(ids) {
			tokens[i] = ids[i]
		}
	}
	for i := range segments {
		if segments[i] = 0; i >= first && i < len(ids) {
			segments[i] = 1
		}
	}
	row.Set(batch.Lengths, int32(len(ids)))
}
