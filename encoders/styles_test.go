package encoders

import (
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// TestStylesRefused: options that do not go together are told when a tower is built.
func TestStylesRefused(t *testing.T) {
	image := func(change func(v *ViT)) func(s *store, on Scope) {
		return func(s *store, on Scope) {
			v := tinyViT
			change(&v)
			v.Class(on, s.floats("x", 2, 3, 8, 8))
		}
	}
	text := func(tower TextTower) func(s *store, on Scope) {
		return func(s *store, on Scope) {
			tower.Tokens = tokens
			tower.Encode(&Context{}, on, Inputs{batch.Tokens: s.ints("ids", 2*tokens), batch.Lengths: s.ints("lengths", 2)}, Want{Classes: true})
		}
	}
	relative := BERT{TextOptions: TextOptions{Positions: 9, Layers: 1, Width: 16, Heads: 2}, Vocab: vocab, Relative: 32, Classes: 2}
	for name, c := range map[string]struct {
		want  string
		build func(s *store, on Scope)
	}{
		"registers":         {"at least 0 registers", image(func(v *ViT) { v.Registers = -1 })},
		"no class to read":  {"a pool other than class", image(func(v *ViT) { v.NoClass = true })},
		"classes and means": {"one class token with such a pool", image(func(v *ViT) { v.Pool, v.Classes = PoolMean, 2 })},
		"unknown pool":      {"pool must be class, mean or attention", image(func(v *ViT) { v.Pool = "max" })},
		"activation":        {"activation must be", image(func(v *ViT) { v.Activation = "relu" })},
		"unknown text pool": {"pool must be class, pooler, mean, first_last, weighted_mean, max, gpo, esa or end", text(TextTower{Encoder: tinyBERT, Pool: "min"})},
		"text classes":      {"goes with one class token", text(TextTower{Encoder: BERT{TextOptions: TextOptions{Positions: 9, Layers: 1, Width: 16, Heads: 2}, Vocab: vocab, Classes: 2}, Pool: PoolMean})},
		"bias and classes":  {"a bias by distance goes with one class token", text(TextTower{Encoder: relative})},
		"no layers":         {"at least one layer", text(TextTower{Encoder: PreNormText{TextOptions: TextOptions{Positions: 9, Width: 16, Heads: 2}, Vocab: vocab}, Pool: PoolEnd})},
		"identity": {"tokens must have the 8 channels", func(s *store, on Scope) {
			p := Projection{Identity: true}
			p.Space.Dim = 8
			p.Rows(on, s.floats("x", 2, 12))
		}},
	} {
		s := newStore(0)
		err := func() (err error) {
			defer op.Catch(&err)
			c.build(s, NewScope(s))
			return nil
		}()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestTextPools: what stands for a text is the same whether its words are read too or not, and
// is the first token, BERT's pooler of it, the last one or the mean of those that are no padding.
func TestTextPools(t *testing.T) {
	pre := PreNormText{TextOptions: TextOptions{Positions: 9, Layers: 2, Width: 16, Heads: 2, Eps: 1e-5}, Vocab: vocab, Causal: true}
	lengths := []int32{int32(tokens), 2, 1}
	for name, tower := range map[string]TextTower{
		"bert class": {Encoder: tinyBERT}, "bert mean": {Encoder: tinyBERT, Pool: PoolMean}, "bert end": {Encoder: tinyBERT, Pool: PoolEnd}, "bert pooler": {Encoder: tinyBERT, Pool: PoolPooler},
		"pre-norm end": {Encoder: pre, Pool: PoolEnd}, "pre-norm mean": {Encoder: pre, Pool: PoolMean}, "padding is read": {Encoder: pre, Pool: PoolEnd, Padding: true},
		"relative end": {Encoder: BERT{TextOptions: TextOptions{Positions: 9, Layers: 2, Width: 16, Heads: 2}, Vocab: vocab, Relative: 32}, Pool: PoolEnd},
	} {
		tower.Tokens = tokens
		s := newStore(0.2)
		on := NewScope(s)
		ids, lens := s.ints("ids", 3*tokens), s.ints("lengths", 3)
		in := Inputs{batch.Tokens: ids, batch.Lengths: lens}
		all := tower.Encode(&Context{}, on, in, Want{Tokens: true, Classes: true})
		alone := tower.Encode(&Context{}, on, in, Want{Classes: true})
		values := map[string][]float32{}
		words := make([]int32, 3*tokens)
		for i := range words {
			words[i] = int32(1 + i*7%(vocab-1))
		}
		given := map[*gorgonia.Node]any{ids: words, lens: lengths}
		values["states"] = s.run(t, all.Tokens, given)
		values["classes"] = s.run(t, all.Classes, given)
		values["alone"] = s.run(t, alone.Classes, given)
		want := make([]float32, 3*16)
		for r, n := range lengths {
			row := func(i int) []float32 { return values["states"][(r*tokens+i)*16:][:16] }
			for d := range 16 {
				switch {
				case tower.Pool == PoolMean:
					for i := range int(n) {
						want[r*16+d] += row(i)[d] / float32(n)
					}
				case tower.Pool == PoolPooler:
					sum := float64(s.values["pooler/bias"][d])
					for k, v := range row(0) {
						sum += float64(s.values["pooler/weight"][d*16+k]) * float64(v)
					}
					want[r*16+d] = float32(math.Tanh(sum))
				case tower.Pool == PoolEnd && tower.Padding:
					want[r*16+d] = row(tokens - 1)[d]
				case tower.Pool == PoolEnd:
					want[r*16+d] = row(int(n) - 1)[d]
				default:
					want[r*16+d] = row(0)[d]
				}
			}
		}
		if a, b := distance(values["classes"], want), distance(values["alone"], want); !(a <= 1e-5) || !(b <= 1e-5) {
			t.Errorf("%s differs by %v, without states by %v", name, a, b)
		}
	}
}
