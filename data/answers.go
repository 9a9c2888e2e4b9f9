package data

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
)

// Answers turns the answers of examples into the columns batch.Answers, AnswerLengths and AnswerWeights. The zero value
// gives no columns.
type Answers struct {
	Most   int    // A, answers of an example; of more the heaviest are kept
	Tokens int    // L, tokens of an answer, those that begin and end it included
	Clean  string // rule by which answers are cleaned, see Clean
}

// answerEnd is the tokenizer of texts that have an end.
type answerEnd interface{ SepID() int32 }

// check says what is wrong with a.
func (a Answers) check(t *Texts) error {
	if a.Most == 0 || t == nil {
		return nil
	}
	if a.Tokens < 3 {
		return fmt.Errorf("data: tokens of an answer must be >= 3 (got %d): one begins and one ends it", a.Tokens)
	}
	end, ok := t.Tokenizer.(answerEnd)
	if !ok || end.SepID() < 0 {
		return fmt.Errorf("data: the vocabulary has no token that ends an answer: use one with [SEP]")
	}
	return nil
}

// columns of a batch.
func (a Answers) columns() []Column {
	if a.Most == 0 {
		return nil
	}
	return []Column{
		{Name: batch.Answers, Shape: []int{a.Most, a.Tokens}, Type: batch.Int32},
		{Name: batch.AnswerLengths, Shape: []int{a.Most}, Type: batch.Int32},
		{Name: batch.AnswerWeights, Shape: []int{a.Most}},
	}
}

// Encode returns the ids of an answer, from the token that begins a text to the one that ends it: at most Tokens, the
// last of which ends it always. nil: nothing is left of it by Clean.
func (a Answers) Encode(answer string, t Tokenizer) []int32 {
	said := Clean(a.Clean, answer, 0)
	if said == "" {
		return nil
	}
	end := t.(answerEnd).SepID()
	ids := t.Encode(said, 0)
	if n := len(ids); n > 0 && ids[n-1] == end {
		ids = ids[:n-1]
	}
	return append(slices.Clip(ids[:min(len(ids), a.Tokens-1)]), end)
}

// fill writes the columns of answers that row has.
func (a Answers) fill(list []Answer, t *Texts, row batch.Row) error {
	ids, lengths, weights := row.Ints(batch.Answers), row.Ints(batch.AnswerLengths), row.Floats(batch.AnswerWeights)
	if t == nil || ids == nil && lengths == nil && weights == nil {
		return nil
	}
	for k := range weights {
		weights[k] = 0
	}
	for k := range lengths {
		lengths[k] = 1
	}
	for k := range ids {
		ids[k] = t.Tokenizer.PadID()
	}
	k := 0
	for _, x := range list {
		said := a.Encode(x.Text, t.Tokenizer)
		if said == nil || k == a.Most {
			continue
		}
		if ids != nil {
			copy(ids[k*a.Tokens:][:a.Tokens], said)
		}
		if lengths != nil {
			lengths[k] = int32(len(said))
		}
		if weights != nil {
			weights[k] = x.Weight
		}
		k++
	}
	if k == 0 {
		return fmt.Errorf("data: no answer of at least one word: remove the question, or give it one")
	}
	return nil
}
