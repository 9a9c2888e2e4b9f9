package encoders

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// TestGRUParameters pins names and shapes: they are PyTorch's and the keys of checkpoints.
func TestGRUParameters(t *testing.T) {
	for directions, want := range map[string]string{
		DirectionForward: `embeddings/word/weight (20, 3)
layers/00/forward/bias_hh (12)
layers/00/forward/bias_ih (12)
layers/00/forward/weight_hh (12, 4)
layers/00/forward/weight_ih (12, 3)
layers/01/forward/bias_hh (12)
layers/01/forward/bias_ih (12)
layers/01/forward/weight_hh (12, 4)
layers/01/forward/weight_ih (12, 4)`,
		DirectionsConcat: `embeddings/word/weight (20, 3)
layers/00/forward/bias_hh (6)
layers/00/forward/bias_ih (6)
layers/00/forward/weight_hh (6, 2)
layers/00/forward/weight_ih (6, 3)
layers/00/reverse/bias_hh (6)
layers/00/reverse/bias_ih (6)
layers/00/reverse/weight_hh (6, 2)
layers/00/reverse/weight_ih (6, 3)
layers/01/forward/bias_hh (6)
layers/01/forward/bias_ih (6)
layers/01/forward/weight_hh (6, 2)
layers/01/forward/weight_ih (6, 4)
layers/01/reverse/bias_hh (6)
layers/01/reverse/bias_ih (6)
layers/01/reverse/weight_hh (6, 2)
layers/01/reverse/weight_ih (6, 4)`,
	} {
		s := newStore(0)
		g := GRU{Vocab: vocab, Embedding: 3, Layers: 2, Width: 4, Directions: directions}
		g.Text(&Context{}, NewScope(s), TextArgs{IDs: s.ints("ids", 2*tokens), Lengths: s.ints("lengths", 2), Len: tokens}, nil)
		list := s.list()
		slices.Sort(list)
		if got := strings.Join(list, "\n"); got != want {
			t.Errorf("%s:\n%s", directions, got)
		}
	}
}

// gruOf builds a tower and runs it on two texts of 5 and 2 words.
func gruOf(t *testing.T, tower TextTower, key []int32, want Want, of func(Sequence) *gorgonia.Node) []float32 {
	t.Helper()
	s := newStore(.3)
	c := &Context{}
	inputs := map[*gorgonia.Node]any{}
	if key != nil {
		c.DropoutKey = s.ints("key", 2)
		inputs[c.DropoutKey] = key
	}
	ids, lengths := s.ints("ids", 2*tokens), s.ints("lengths", 2)
	inputs[ids], inputs[lengths] = []int32{5, 6, 7, 8, 9, 7, 3, 0, 0, 0}, []int32{5, 2}
	tower.Tokens = tokens
	return s.run(t, of(tower.Encode(c, NewScope(s), Inputs{batch.Tokens: ids, batch.Lengths: lengths}, want)), inputs)
}

// TestGRUPools: what stands for a text is what the states give, whether these are read or not.
func TestGRUPools(t *testing.T) {
	const d = 4
	for _, directions := range []string{DirectionForward, DirectionsMean, DirectionsConcat} {
		tower := TextTower{Encoder: GRU{Vocab: vocab, Embedding: 3, Layers: 2, Width: d, Directions: directions}}
		states := gruOf(t, tower, nil, Want{Tokens: true}, func(q Sequence) *gorgonia.Node { return q.Tokens })
		if slices.ContainsFunc(states[7*d:], func(v float32) bool { return v != 0 }) || !slices.ContainsFunc(states[6*d:7*d], func(v float32) bool { return v != 0 }) {
			t.Errorf("%s: states %v, want those of the two words of the second text and zeros", directions, states[5*d:])
		}
		for pool, want := range map[Pool][]float32{
			PoolClass: append(slices.Clone(states[:d]), states[5*d:6*d]...),
			PoolEnd:   append(slices.Clone(states[4*d:5*d]), states[6*d:7*d]...),
		} {
			tower.Pool = pool
			for _, all := range []bool{true, false} {
				got := gruOf(t, tower, nil, Want{Tokens: all, Classes: true}, func(q Sequence) *gorgonia.Node { return q.Classes })
				forward := d // channels that the forward direction alone makes
				switch {
				case pool == PoolEnd && directions == DirectionsConcat:
					forward = d / 2
				case pool == PoolEnd && directions == DirectionsMean:
					forward = 0
				}
				for r := range 2 {
					if !slices.Equal(got[r*d:][:forward], want[r*d:][:forward]) {
						t.Errorf("%s, pool %s: got %v, want %v", directions, pool, got, want)
					}
				}
				if pool == PoolEnd && directions == DirectionsConcat && !slices.Equal(got[d/2:d], states[d/2:d]) {
					t.Errorf("the last state of the reverse direction is %v, want that at the first word, %v", got[d/2:d], states[d/2:d])
				}
			}
		}
	}
}

// TestGRUDropout: embeddings are dropped with a key and not without one.
func TestGRUDropout(t *testing.T) {
	of := func(dropout float64, key []int32) []float32 {
		tower := TextTower{Encoder: GRU{Vocab: vocab, Embedding: 3, Layers: 1, Width: 4, Dropout: dropout}, Pool: PoolMean}
		return gruOf(t, tower, key, Want{Classes: true}, func(q Sequence) *gorgonia.Node { return q.Classes })
	}
	plain := of(0, nil)
	if !slices.Equal(plain, of(.5, nil)) || !slices.Equal(plain, of(0, []int32{1, 2})) {
		t.Error("dropout without a key or a share changes the states")
	}
	if a, b := of(.5, []int32{1, 2}), of(.5, []int32{1, 3}); slices.Equal(a, plain) || slices.Equal(a, b) {
		t.Error("dropout changes nothing")
	}
}

func TestGRURefused(t *testing.T) {
	for want, g := range map[string]GRU{
		"at least one layer (got 0)": {Vocab: vocab, Embedding: 3, Width: 4},
		"must be even":               {Vocab: vocab, Embedding: 3, Layers: 1, Width: 5, Directions: DirectionsConcat},
	} {
		s := newStore(0)
		err := func() (err error) {
			defer op.Catch(&err)
			g.Text(&Context{}, NewScope(s), TextArgs{IDs: s.ints("ids", 2*tokens), Lengths: s.ints("lengths", 2), Len: tokens}, nil)
			return nil
		}()
		check.Error(t, err, want)
	}
}
