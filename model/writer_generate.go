package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// GenerateOptions are those of a beam search. The zero value is greedy, up to 20 tokens.
type GenerateOptions struct {
	Beams     int // texts that are followed at a time; 0: 1
	MinTokens int // tokens that are written at least, before the one that ends a text
	MaxTokens int // tokens that are written at most, with the one that ends a text; 0: 20
	// LengthPenalty is the power of the number of written tokens, with the last, that the log-probability of a text is
	// divided by: larger values favour longer texts; 0: none.
	LengthPenalty float64
}

// check fills in what is not said, and says what is wrong.
func (o *GenerateOptions) check(m *Model) error {
	if o.Beams == 0 {
		o.Beams = 1
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = min(20, m.cfg.Model.Text.Positions)
	}
	most := m.cfg.Model.Text.Positions
	switch {
	case m.o.BeginID < 0 || m.o.EndID < 0:
		return fmt.Errorf("model: writing needs tokens that begin and end a text (got %d and %d): use a vocabulary with [CLS] and [SEP]", m.o.BeginID, m.o.EndID)
	case o.Beams < 1 || o.Beams > m.o.Vocab/2:
		return fmt.Errorf("model: beams must be from 1 to half of the vocabulary, %d (got %d)", m.o.Vocab/2, o.Beams)
	case o.MaxTokens < 1 || o.MaxTokens > most:
		return fmt.Errorf("model: a text has from 1 to model.text.positions = %d tokens (got %d)", most, o.MaxTokens)
	case o.MinTokens < 0 || o.MinTokens >= o.MaxTokens:
		return fmt.Errorf("model: at least %d tokens of at most %d leave no place for the last: lower the first or raise the second", o.MinTokens, o.MaxTokens)
	}
	return nil
}

// beam is a text that goes on.
type beam struct {
	tokens []int32 // without the first
	places []int32 // of all tokens that were read in the cache
	sum    float64 // log-probability
}

// search is the beam search about a row.
type search struct {
	beams []beam
	found []hypothesis // the best texts that have ended, the best first, at most as many as beams
	over  bool
	// next are the likeliest tokens behind each beam.
	next [][]likely
}

// hypothesis is a text that has ended.
type hypothesis struct {
	tokens []int32
	score  float64
}

// likely is a token with its log-probability.
type likely struct {
	id   int32
	logp float64
}

// Generate writes a text about each row of b by beam search: the tokens of its words, without those around them. The
// search about a row is over when so many texts have ended as there are beams and no beam can become better than the
// worst of them at its present length. It ends early with the error of ctx, and with an *eval.NonFiniteError where a
// logit is NaN.
func (w *Writer) Generate(ctx context.Context, b *batch.Batch, o GenerateOptions) ([][]int32, error) {
	if err := o.check(w.m); err != nil {
		return nil, err
	}
	read, err := w.read(ctx, b)
	if err != nil {
		return nil, err
	}
	n := b.Rows()
	x, err := w.next(read, n*o.Beams, max(1, o.MaxTokens-1), n*o.Beams*o.MaxTokens)
	if err != nil {
		return nil, err
	}
	rows := make([]search, n)
	for i := range rows {
		rows[i].beams = []beam{{}}
	}
	for step := range o.MaxTokens {
		var tokens []token
		var of [][2]int
		for i := range rows {
			s := &rows[i]
			if s.over {
				continue
			}
			s.next = make([][]likely, len(s.beams))
			for k := range s.beams {
				at := &s.beams[k]
				id := w.m.o.BeginID
				if step > 0 {
					id = at.tokens[step-1]
				}
				place := step*n*o.Beams + len(tokens)
				tokens = append(tokens, token{id: id, row: i, before: at.places, place: place})
				at.places = append(slices.Clone(at.places), int32(place))
				of = append(of, [2]int{i, k})
			}
		}
		if len(tokens) == 0 {
			break
		}
		err := x.each(ctx, tokens, func(i int, logits []float32) {
			without := int32(-1)
			if step < o.MinTokens {
				without = w.m.o.EndID
			}
			at := of[i]
			rows[at[0]].next[at[1]] = likeliest(logits, 2*o.Beams, without)
		})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			s := &rows[i]
			if s.over {
				continue
			}
			if slices.ContainsFunc(s.next, func(list []likely) bool { return list == nil }) {
				return nil, &eval.NonFiniteError{What: fmt.Sprintf("model: scores of token %d of text %d are NaN", step,
					i),
					Cure: "evaluate another checkpoint"}
			}
			s.step(o, w.m.o.EndID)
		}
	}
	texts := make([][]int32, n)
	for i := range rows {
		texts[i] = rows[i].best(o)
	}
	return texts, nil
}

// likeliest returns the k likeliest tokens but one, the likeliest first, of equal ones the first; nil where a logit is
// NaN.
func likeliest(logits []float32, k int, without int32) []likely {
	top := make([]likely, 0, k+1)
	for id, v := range logits {
		if v != v {
			return nil
		}
		if int32(id) == without || len(top) == k && float64(v) <= top[k-1].logp {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, float64(v), func(x likely, v float64) int {
			if x.logp >= v {
				return -1
			}
			return 1
		})
		top = slices.Insert(top, at, likely{int32(id), float64(v)})
		top = top[:min(len(top), k)]
	}
	lse := float64(vector.LogSumExp(logits))
	for i := range top {
		top[i].logp -= lse
	}
	return top
}

// step goes on with the likeliest tokens behind the beams.
func (s *search) step(o GenerateOptions, end int32) {
	type way struct {
		beam int
		likely
		sum float64
	}
	var ways []way
	for k, list := range s.next {
		for _, x := range list {
			ways = append(ways, way{k, x, s.beams[k].sum + x.logp})
		}
	}
	slices.SortStableFunc(ways, func(a, b way) int { return cmp.Compare(b.sum, a.sum) })
	ways = ways[:min(len(ways), 2*o.Beams)]
	var beams []beam
	for rank, w := range ways {
		from := s.beams[w.beam]
		switch {
		case len(beams) == o.Beams || math.IsInf(w.sum, -1):
		case w.id == end && rank < o.Beams:
			s.end(o, hypothesis{from.tokens, o.score(w.sum, len(from.tokens)+1)})
		case w.id != end:
			beams = append(beams, beam{append(slices.Clone(from.tokens), w.id), from.places, w.sum})
		}
	}
	s.beams = beams
	if s.over = len(beams) == 0; !s.over && len(s.found) == o.Beams {
		s.over = s.found[o.Beams-1].score >= o.score(beams[0].sum, len(beams[0].tokens))
	}
}

// score is the score of a text of n written tokens with a log-probability.
func (o GenerateOptions) score(sum float64, n int) float64 {
	return sum / math.Pow(float64(n), o.LengthPenalty)
}

// end keeps a text that has ended if it is among the best.
func (s *search) end(o GenerateOptions, h hypothesis) {
	at := len(s.found)
	for at > 0 && s.found[at-1].score < h.score {
		at--
	}
	s.found = slices.Insert(s.found, at, h)
	s.found = s.found[:min(len(s.found), o.Beams)]
}

// best returns the best text, among those that have ended and, where the search is not over, those that have not.
func (s *search) best(o GenerateOptions) []int32 {
	if !s.over {
		for _, b := range s.beams {
			s.end(o, hypothesis{b.tokens, o.score(b.sum, len(b.tokens))})
		}
	}
	if len(s.found) == 0 {
		return nil
	}
	return s.found[0].tokens
}
