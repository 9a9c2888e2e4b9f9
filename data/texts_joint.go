package data

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
)

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
