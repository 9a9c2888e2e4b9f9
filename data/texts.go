package data

import (
	"fmt"

	"github.com/geoalign/geoalign/data/batch"
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
func (t *Texts) Columns() []Column { return t.columns(batch.Tokens, batch.Lengths) }

// SecondColumns are Columns of the second text of a sample, batch.SecondTokens and batch.SecondLengths.
func (t *Texts) SecondColumns() []Column { return t.columns(batch.SecondTokens, batch.SecondLengths) }

func (t *Texts) columns(tokens, lengths string) []Column {
	if t == nil {
		return nil
	}
	return []Column{
		{Name: tokens, Shape: []int{t.Tokens}, Type: batch.Int32},
		{Name: lengths, Type: batch.Int32},
	}
}

// Fill writes the columns of text that row has: the ids, padded, and how many they
// are.
func (t *Texts) Fill(text string, row batch.Row) { t.fill(text, row, batch.Tokens, batch.Lengths) }

// FillText is Fill for the columns of a text of a row, which TextColumns are.
func (t *Texts) FillText(text string, row batch.Row, of batch.Text) {
	t.fill(text, row, of.Tokens, of.Lengths)
}

// TextColumns are Columns of a text of a row.
func (t *Texts) TextColumns(of batch.Text) []Column { return t.columns(of.Tokens, of.Lengths) }

// FillSecond is Fill for SecondColumns.
func (t *Texts) FillSecond(text string, row batch.Row) {
	t.fill(text, row, batch.SecondTokens, batch.SecondLengths)
}

func (t *Texts) fill(text string, row batch.Row, tokensOf, lengthsOf string) {
	tokens, lengths := row.Ints(tokensOf), row.Ints(lengthsOf)
	if t == nil || tokens == nil && lengths == nil {
		return
	}
	ids := t.Tokenizer.Encode(text, t.Tokens)
	rest := tokens[copy(tokens, ids):]
	for i, pad := 0, t.Tokenizer.PadID(); i < len(rest); i++ {
		rest[i] = pad
	}
	row.Set(lengthsOf, int32(min(len(ids), t.Tokens)))
}
