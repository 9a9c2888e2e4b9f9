package encoders

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestPadIsNotLearned reads the gradient of the word embeddings for texts that have the id of padding among their words.
func TestPadIsNotLearned(t *testing.T) {
	_, ids, lengths := testBatch()
	for _, pad := range []int{-1, 2, 7} {
		s := newStore(.2)
		b := tinyBERT
		b.Pad = pad
		in, n := s.ints("ids", len(ids)), s.ints("lengths", len(lengths))
		x := b.Text(&Context{}, NewScope(s).In("text"), TextArgs{IDs: in, Lengths: n, Len: tokens}, nil)
		loss := arith.Sum(nn.LinearGELU(x, NewScope(s).Param("read", bertInit, 4, b.Width), nil))
		table := s.nodes["text/embeddings/word/weight"]
		grads := check.Get(gorgonia.Grad(loss, table))(t)
		g := s.run(t, grads[0], map[*gorgonia.Node]any{in: ids, n: lengths})
		for _, id := range []int{2, 7, 8} {
			zero := !slices.ContainsFunc(g[id*b.Width:][:b.Width], func(v float32) bool { return v != 0 })
			if zero != (id == pad) {
				t.Errorf("padding %d: the gradient of word %d is zero: %v", pad, id, zero)
			}
		}
	}
}
