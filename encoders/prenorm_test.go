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

// TestTokenBehind: the token behind the places of a text sees its words and the first place of padding, words see what they
// see without it, and what it gives is the same whether words are read too or not.
func TestTokenBehind(t *testing.T) {
	lengths := []int32{int32(tokens), 2, 1}
	run := func(behind bool, want Want, change int) []float32 {
		s := newStore(0.2)
		ids, lens := s.ints("ids", 3*tokens), s.ints("lengths", 3)
		words := make([]int32, 3*tokens)
		for i := range words {
			words[i] = int32(1 + i*7%(vocab-1))
		}
		if change >= 0 {
			words[change] = (words[change] + 1) % vocab
		}
		tower := TextTower{Tokens: tokens, Pool: PoolClass, Encoder: PreNormText{TextOptions: TextOptions{Positions: tokens + 1, Layers: 2, Width: 16, Heads: 2, Eps: 1e-5}, Vocab: vocab,
			Causal: true, Behind: behind}}
		q := tower.Encode(&Context{}, NewScope(s), Inputs{batch.Tokens: ids, batch.Lengths: lens}, want)
		x := q.Classes
		if !want.Classes {
			x = q.Tokens
		}
		return s.run(t, x, map[*gorgonia.Node]any{ids: words, lens: lengths})
	}
	alone, both := Want{Classes: true}, Want{Classes: true, Tokens: true}
	class := run(true, alone, -1)
	if d := distance(class, run(true, both, -1)); !(d < 1e-5) {
		t.Errorf("with words and without them it differs by %v", d)
	}
	words, plain := run(true, Want{Tokens: true}, -1), run(false, Want{Tokens: true}, -1)
	for r, n := range lengths {
		from, to := r*tokens*16, (r*tokens+int(n))*16
		if d := distance(words[from:to], plain[from:to]); !(d < 1e-5) {
			t.Errorf("words of text %d differ by %v from those without the token", r, d)
		}
	}
	for place, seen := range map[int]bool{tokens + 1: true, tokens + 2: true, tokens + 3: false, 2*tokens + 1: true, 2*tokens + 2: false} {
		row := place / tokens * 16
		if d := distance(class[row:row+16], run(true, alone, place)[row:row+16]); (d > 1e-3) != seen {
			t.Errorf("with another token at %d it differs by %v, want that it sees it: %v", place, d, seen)
		}
	}
}
