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
	ids := t.Tokenizer.Encode(text, t.Tokens)
	rest := tokens[copy(tokens, ids):]
	for i, pad := 0, t.Tokenizer.PadID(); i < len(rest); i++ {
		rest[i] = pad
	}
	row.Set(of.Lengths, int32(min(len(ids), t.Tokens)))
}
