package vqa

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/objectives"
)

// answersOf returns a batch of answers with the given weights, two rows of three, of which answer a of row i is the tokens
// 2, 10i+a, 3 or, the last one, has a word more.
func answersOf(weights ...float32) *batch.Batch {
	l := Loss{Answers: 3, Tokens: 5}
	b := batch.New(2, l.Columns(objectives.Host{})...)
	copy(b.Floats(batch.AnswerWeights), weights)
	for i := range 6 {
		text := []int32{2, int32(10*(i/3) + i%3), 3}
		if i%3 == 2 {
			text = []int32{2, int32(10*(i/3) + i%3), 7, 3}
		}
		copy(b.Ints(batch.Answers)[5*i:], text)
		b.Ints(batch.AnswerLengths)[i] = int32(len(text))
	}
	return b
}

// TestAnswersArePacked: the answers that there are fill the first rows in their order, with the tokens that are read, those that
// follow and a share of the weight; what does not fit is the lightest.
func TestAnswersArePacked(t *testing.T) {
	b := answersOf(.5, 0, .25, .3, .6, 0)
	for _, test := range []struct {
		rows  float64
		words []int32 // the first word of each row
		out   int
	}{{0, []int32{0, 2, 10, 11}, 0}, {2, []int32{0, 2, 10, 11}, 0}, {1.2, []int32{0, 10, 11}, 1}, {1, []int32{0, 11}, 2}, {.1, []int32{11}, 3}} {
		l := Loss{Answers: 3, Tokens: 5, Rows: test.rows}
		rows := l.room(2)
		if rows < len(test.words) {
			t.Fatalf("%v: there is room for %d", test.rows, rows)
		}
		d := objectives.NewDecoderTargets("answer", rows, l.Tokens)
		for range 2 { // again over what was there
			out, err := l.fill(&feed.Step{Batch: b}, d, rows)
			if err != nil || out != test.out || d.Rows != len(test.words) {
				t.Fatalf("%v: %d rows, %d left out, %v", test.rows, d.Rows, out, err)
			}
		}
		for r, word := range test.words {
			long := word%10 == 2
			read, next, length := []int32{2, word, 0, 0}, []int32{word, 3, -1, -1}, int32(2)
			if long {
				read, next, length = []int32{2, word, 7, 0}, []int32{word, 7, 3, -1}, 3
			}
			weight := b.Floats(batch.AnswerWeights)[3*(word/10)+word%10] / 2
			if !slices.Equal(d.Tokens[4*r:][:4], read) || !slices.Equal(d.Next[4*r:][:4], next) || d.Lengths[r] != length || d.Of[r] != word/10 || d.Weights[4*r] != weight {
				t.Errorf("%v: row %d reads %v, writes %v, %d of %d, weight %v", test.rows, r, d.Tokens[4*r:][:4], d.Next[4*r:][:4], d.Lengths[r], d.Of[r], d.Weights[4*r])
			}
		}
		for r := len(test.words); r < rows; r++ {
			if slices.Max(d.Next[4*r:][:4]) >= 0 || d.Lengths[r] != 0 {
				t.Errorf("%v: row %d is not empty", test.rows, r)
			}
		}
	}
}

// TestEqualAnswersFallFromTheEnd: of equal answers those that come last are left out.
func TestEqualAnswersFallFromTheEnd(t *testing.T) {
	l := Loss{Answers: 3, Tokens: 5, Rows: 1}
	d := objectives.NewDecoderTargets("answer", 2, l.Tokens)
	if out, err := l.fill(&feed.Step{Batch: answersOf(1, 1, 0, 1, 0, 0)}, d, 2); err != nil || out != 1 || d.Tokens[1] != 0 || d.Tokens[5] != 1 {
		t.Errorf("rows %v, %d left out, %v", d.Tokens, out, err)
	}
}

// TestAnswersWithoutWords: an answer that counts and has no end is refused.
func TestAnswersWithoutWords(t *testing.T) {
	for _, n := range []int32{0, 1, 6} {
		b := answersOf(1, 0, 0, 1, 0, 0)
		b.Ints(batch.AnswerLengths)[3] = n
		l := Loss{Answers: 3, Tokens: 5}
		_, err := l.fill(&feed.Step{Batch: b}, objectives.NewDecoderTargets("answer", 6, 5), 6)
		if err == nil || !strings.Contains(err.Error(), "answer 0 of question 1 of the batch has") {
			t.Errorf("%d tokens: %v", n, err)
		}
	}
}
