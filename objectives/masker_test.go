package objectives

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

func TestMaskRates(t *testing.T) {
	// 200 batches of 16 texts of 3 to 25 tokens: each share of BERT's rule
	// within five standard deviations.
	// Capacity is the mean of 57.6 plus six standard deviations of 7.0.
	const b, l, vocab, maskID = 16, 25, 1000, 4
	k := Masker{Prob: 0.15, Vocab: vocab, MaskID: maskID, Capacity: 100}
	r := rand.New(rand.NewPCG(1, 2))
	tokens, lengths := make([]int32, b*l), make([]int32, b)
	var m Masked
	candidates, chosen, masked, kept := 0, 0, 0, 0
	for range 200 {
		clear(tokens)
		for i := range lengths {
			lengths[i] = int32(3 + r.IntN(l-2))
			tokens[i*l] = 2
			for j := 1; j < int(lengths[i]); j++ {
				tokens[i*l+j] = int32(5 + r.IntN(vocab-5))
			}
			candidates += int(lengths[i]) - 1
		}
		before := slices.Clone(tokens)
		check.OK(t, k.Apply(r, tokens, lengths, &m))
		if !slices.Equal(tokens, before) {
			t.Fatal("the input was changed")
		}
		if len(m.Positions) != k.Capacity || len(m.Labels) != k.Capacity {
			t.Fatalf("%d positions and %d labels for capacity %d", len(m.Positions), len(m.Labels), k.Capacity)
		}
		hidden := map[int32]bool{}
		for i, p := range m.Positions {
			if i >= m.Count {
				if p != 0 || m.Labels[i] != IgnoreLabel {
					t.Fatalf("padding entry %d: %d, %d", i, p, m.Labels[i])
				}
				continue
			}
			row, col := p/l, p%l
			if col == 0 || col >= lengths[row] || hidden[p] || i > 0 && p <= m.Positions[i-1] {
				t.Fatalf("position %d (row %d, column %d of %d)", p, row, col, lengths[row])
			}
			hidden[p] = true
			if m.Labels[i] != tokens[p] {
				t.Fatalf("label %d for token %d", m.Labels[i], tokens[p])
			}
			switch m.Tokens[p] {
			case maskID:
				masked++
			case tokens[p]:
				kept++
			}
			if m.Tokens[p] < 0 || m.Tokens[p] >= vocab {
				t.Fatalf("id %d", m.Tokens[p])
			}
		}
		chosen += m.Count
		for p := range tokens {
			if m.Tokens[p] != tokens[p] && !hidden[int32(p)] {
				t.Fatalf("token %d changed without a label", p)
			}
		}
	}
	for _, c := range []struct {
		name string
		k, n int
		p    float64
	}{
		// A random id is [MASK], or the old one, with probability 1/1000 each.
		{"chosen", chosen, candidates, 0.15}, {"masked", masked, chosen, 0.8001}, {"kept", kept, chosen, 0.1001},
	} {
		share := float64(c.k) / float64(c.n)
		if !(math.Abs(share-c.p) <= 5*math.Sqrt(c.p*(1-c.p)/float64(c.n))) {
			t.Errorf("%s: %d of %d = %.4f, want %.4f", c.name, c.k, c.n, share, c.p)
		}
	}
}

func TestMaskSurplusIsLeftAlone(t *testing.T) {
	k := Masker{Prob: 1, Vocab: 100, MaskID: 4, Capacity: 3}
	tokens := []int32{2, 10, 11, 12, 0, 2, 13, 14, 0, 0}
	var m Masked
	check.OK(t, k.Apply(rand.New(rand.NewPCG(1, 1)), tokens, []int32{4, 3}, &m))
	if m.Count != 3 || !slices.Equal(m.Positions, []int32{1, 2, 3}) || !slices.Equal(m.Labels, []int32{10, 11, 12}) {
		t.Errorf("got %+v", m)
	}
	if !slices.Equal(m.Tokens[4:], tokens[4:]) {
		t.Errorf("surplus tokens were masked: %v", m.Tokens)
	}
}

func TestMaskChoosesAtLeastOne(t *testing.T) {
	k := Masker{Prob: 1e-9, Vocab: 100, MaskID: 4, Capacity: 8}
	r := rand.New(rand.NewPCG(1, 1))
	tokens := []int32{2, 0, 0, 2, 13, 14, 2, 15, 0}
	seen := map[int32]int{}
	var m Masked
	for range 300 {
		check.OK(t, k.Apply(r, tokens, []int32{1, 3, 2}, &m))
		if m.Count != 1 {
			t.Fatalf("%d chosen, want 1", m.Count)
		}
		seen[m.Positions[0]]++
	}
	if len(seen) != 3 || seen[4] < 60 || seen[5] < 60 || seen[7] < 60 {
		t.Errorf("positions %v: want 4, 5 and 7 about equally often", seen)
	}
	if err := k.Apply(r, []int32{2, 0, 2, 0}, []int32{1, 1}, &m); err != nil || m.Count != 0 {
		t.Errorf("nothing to choose: %d, %v", m.Count, err)
	}
}

func TestMaskRefuses(t *testing.T) {
	good := Masker{Prob: 0.15, Vocab: 10, MaskID: 4, Capacity: 4}
	r := rand.New(rand.NewPCG(1, 1))
	for name, k := range map[string]Masker{
		"prob": {Prob: math.NaN(), Vocab: 10, MaskID: 4, Capacity: 4},
		"id":   {Prob: 0.15, Vocab: 4, MaskID: 4, Capacity: 4},
		"room": {Prob: 0.15, Vocab: 10, MaskID: 4},
	} {
		if err := k.Apply(r, []int32{2, 5}, []int32{2}, &Masked{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, lengths := range [][]int32{{}, {3}, {-1}, {1, 1, 1}} {
		if err := good.Apply(r, []int32{2, 5}, lengths, &Masked{}); err == nil {
			t.Errorf("lengths %v: no error", lengths)
		}
	}
}

func TestMaskLeavesSpecials(t *testing.T) {
	// <s> w w </s> pad, and <s> </s>: only the two words may be hidden, also where none was drawn.
	const end = 2
	tokens := []int32{0, 7, 8, end, 1, 0, end, 1, 1, 1}
	var m Masked
	for _, prob := range []float64{1, 1e-9} {
		k := Masker{Prob: prob, Vocab: 10, MaskID: 9, Specials: []int32{0, 1, end, 9}, Capacity: 8}
		hidden := map[int32]int{}
		for i := range 40 {
			check.OK(t, k.Apply(rand.New(rand.NewPCG(uint64(i), 3)), tokens, []int32{4, 2}, &m))
			for _, p := range m.Positions[:m.Count] {
				hidden[p]++
			}
		}
		if len(hidden) != 2 || hidden[1] == 0 || hidden[2] == 0 {
			t.Errorf("probability %g: hidden places %v", prob, hidden)
		}
	}
	// A batch without words predicts nothing.
	k := Masker{Prob: 1, Vocab: 10, MaskID: 9, Specials: []int32{0, 1, end, 9}, Capacity: 8}
	if err := k.Apply(rand.New(rand.NewPCG(1, 3)), tokens[5:], []int32{2}, &m); err != nil || m.Count != 0 {
		t.Errorf("%d tokens predicted of a text without words (%v)", m.Count, err)
	}
}
