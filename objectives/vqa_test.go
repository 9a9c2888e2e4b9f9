package objectives

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
)

// answersOf returns a batch of answers with the given weights, two rows of three, of which answer a of row i is the tokens
// 2, 10i+a, 3 or, the last one, has a word more.
func answersOf(weights ...float32) *batch.Batch {
	l := VQA{Answers: 3, Len: 5}
	b := batch.New(2, l.Columns()...)
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
		l := VQA{Answers: 3, Len: 5, Rows: test.rows}
		rows := l.room(2)
		if rows < len(test.words) {
			t.Fatalf("%v: there is room for %d", test.rows, rows)
		}
		d := newDictation("answer", rows, l.Len)
		for range 2 { // again over what was there
			out, err := l.fill(&feed.Step{Batch: b}, d, rows)
			if err != nil || out != test.out || d.rows != len(test.words) {
				t.Fatalf("%v: %d rows, %d left out, %v", test.rows, d.rows, out, err)
			}
		}
		for r, word := range test.words {
			long := word%10 == 2
			read, next, length := []int32{2, word, 0, 0}, []int32{word, 3, -1, -1}, int32(2)
			if long {
				read, next, length = []int32{2, word, 7, 0}, []int32{word, 7, 3, -1}, 3
			}
			weight := b.Floats(batch.AnswerWeights)[3*(word/10)+word%10] / 2
			if !slices.Equal(d.tokens[4*r:][:4], read) || !slices.Equal(d.next[4*r:][:4], next) || d.lengths[r] != length || d.of[r] != word/10 || d.weights[4*r] != weight {
				t.Errorf("%v: row %d reads %v, writes %v, %d of %d, weight %v", test.rows, r, d.tokens[4*r:][:4], d.next[4*r:][:4], d.lengths[r], d.of[r], d.weights[4*r])
			}
		}
		for r := len(test.words); r < rows; r++ {
			if slices.Max(d.next[4*r:][:4]) >= 0 || d.lengths[r] != 0 {
				t.Errorf("%v: row %d is not empty", test.rows, r)
			}
		}
	}
}

// TestEqualAnswersFallFromTheEnd: of equal answers those that come last are left out.
func TestEqualAnswersFallFromTheEnd(t *testing.T) {
	l := VQA{Answers: 3, Len: 5, Rows: 1}
	d := newDictation("answer", 2, l.Len)
	if out, err := l.fill(&feed.Step{Batch: answersOf(1, 1, 0, 1, 0, 0)}, d, 2); err != nil || out != 1 || d.tokens[1] != 0 || d.tokens[5] != 1 {
		t.Errorf("rows %v, %d left out, %v", d.tokens, out, err)
	}
}

// TestAnswersWithoutWords: an answer that counts and has no end is refused.
func TestAnswersWithoutWords(t *testing.T) {
	for _, n := range []int32{0, 1, 6} {
		b := answersOf(1, 0, 0, 1, 0, 0)
		b.Ints(batch.AnswerLengths)[3] = n
		_, err := VQA{Answers: 3, Len: 5}.fill(&feed.Step{Batch: b}, newDictation("answer", 6, 5), 6)
		if err == nil || !strings.Contains(err.Error(), "answer 0 of question 1 of the batch has") {
			t.Errorf("%d tokens: %v", n, err)
		}
	}
}
