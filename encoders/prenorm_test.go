package encoders

import (
	"testing"

	"github.com/geoalign/geoalign/batch"
	"gorgonia.org/gorgonia"
)

// TestPreNormDropout: masks reach every token of a pre-norm text, and the end token where it alone
// is read.
func TestPreNormDropout(t *testing.T) {
	words, lengths := make([]int32, 3*tokens), []int32{int32(tokens), 2, 1}
	for i := range words {
		words[i] = int32(1 + i*7%(vocab-1))
	}
	run := func(key []int32, want Want) []float32 {
		s := newStore(0.2)
		ids, lens, seed := s.ints("ids", 3*tokens), s.ints("lengths", 3), s.ints("key", 2)
		tower := TextTower{Tokens: tokens, Pool: PoolEnd, Encoder: PreNormText{TextOptions: TextOptions{Positions: 9, Layers: 2, Width: 16, Heads: 2, Dropout: 0.3}, Vocab: vocab}}
		out := tower.Encode(&Context{DropoutKey: seed}, NewScope(s), Inputs{batch.Tokens: ids, batch.Lengths: lens}, want)
		x := out.Classes
		if want.Tokens {
			x = out.Tokens
		}
		return s.run(t, x, map[*gorgonia.Node]any{ids: words, lens: lengths, seed: key})
	}
	for name, want := range map[string]Want{"tokens": {Tokens: true, Classes: true}, "end": {Classes: true}} {
		one, again, other := run([]int32{1, 2}, want), run([]int32{1, 2}, want), run([]int32{1, 3}, want)
		if distance(one, again) != 0 {
			t.Errorf("%s: the same key gives other masks", name)
		}
		for r := range len(one) / 16 {
			if distance(one[r*16:][:16], other[r*16:][:16]) < 1e-3 {
				t.Errorf("%s: row %d has no mask", name, r)
			}
		}
	}
}
