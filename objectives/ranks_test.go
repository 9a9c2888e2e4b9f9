package objectives

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestMaskedShare: the shares of the ranks put together are what was masked, and where a rank has no room the rest is as it was.
func TestMaskedShare(t *testing.T) {
	const rows, l, ranks = 6, 5, 3
	tokens, lengths := make([]int32, rows*l), make([]int32, rows)
	for i := range tokens {
		tokens[i] = int32(10 + i)
	}
	for i := range lengths {
		lengths[i] = int32(2 + i%4)
	}
	var all Masked
	k := Masker{Prob: .5, Vocab: 60, MaskID: 4, Capacity: 20}
	check.OK(t, k.Apply(rand.New(rand.NewPCG(1, 1)), tokens, lengths, &all))
	var masked, positions, labels []int32
	for rank := range ranks {
		var m Masked
		own := tokens[rank*rows*l/ranks:][:rows*l/ranks]
		if first := m.share(&all, own, rank, 9); first != len(positions) || len(m.Positions) != 9 || len(m.Labels) != 9 {
			t.Errorf("rank %d begins with place %d, want %d, and has %d of 9", rank, first, len(positions), len(m.Positions))
		}
		masked = append(masked, m.Tokens...)
		for i, p := range m.Positions[:m.Count] {
			positions, labels = append(positions, p+int32(rank*rows*l/ranks)), append(labels, m.Labels[i])
		}
		if slices.ContainsFunc(m.Labels[m.Count:], func(v int32) bool { return v != IgnoreLabel }) {
			t.Errorf("rank %d: labels %v of %d places", rank, m.Labels, m.Count)
		}
	}
	if !slices.Equal(masked, all.Tokens) || !slices.Equal(positions, all.Positions[:all.Count]) || !slices.Equal(labels, all.Labels[:all.Count]) {
		t.Errorf("tokens %v at %v of %v, want %v at %v of %v", masked, positions, labels, all.Tokens, all.Positions, all.Labels)
	}
	var m Masked
	m.share(&all, tokens[:rows*l/ranks], 0, 1)
	for i, v := range m.Tokens {
		if hidden := i == int(m.Positions[0]); m.Count != 1 || !hidden && v != tokens[i] {
			t.Errorf("token %d is %d without room for it", i, v)
		}
	}
}
