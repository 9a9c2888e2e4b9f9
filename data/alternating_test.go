package data

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
)

// tokenOf is a stream whose tokens are a number more than the sample, with an image of ones where it has images.
type tokenOf struct {
	from, epoch int
	images      bool
}

func (n tokenOf) Columns() []Column {
	list := []Column{{Name: batch.Tokens, Shape: []int{1}, Type: batch.Int32}}
	if n.images {
		list = append(list, Column{Name: batch.Images, Shape: []int{2}})
	}
	return list
}

func (n tokenOf) Sample(c uint64, row batch.Row) error {
	row.Ints(batch.Tokens)[0] = int32(n.from + int(c))
	if x := row.Floats(batch.Images); x != nil && n.images {
		x[0], x[1] = 1, 1
	}
	return nil
}

func (n tokenOf) EpochSamples() int { return n.epoch }

// TestAlternating: a batch of pairs, then batches of sentences, each stream in its order; what sentences have no columns of is 0.
func TestAlternating(t *testing.T) {
	a, err := NewAlternating(tokenOf{0, 5, true}, tokenOf{100, 1000, false}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if n := a.EpochSamples(); n != 2*4*2 {
		t.Errorf("an epoch has %d samples, want 2 batches of 2 pairs with 3 batches of sentences each", n)
	}
	b := batch.New(1, a.Columns()...)
	if n := testing.AllocsPerRun(10, func() { _ = a.Sample(2, b.Row(0)) }); n > 0 {
		t.Errorf("a sample of a sentence allocates %v times", n)
	}
	var tokens, paired []int32
	for c := range uint64(18) {
		b.Floats(batch.Images)[1] = 7 // of the batch before
		if err := a.Sample(c, b.Row(0)); err != nil {
			t.Fatal(err)
		}
		tokens, paired = append(tokens, b.Ints(batch.Tokens)[0]), append(paired, b.Ints(batch.Paired)[0])
		if x := b.Floats(batch.Images); x[0] != float32(b.Ints(batch.Paired)[0]) || x[1] != x[0] {
			t.Errorf("sample %d has the image %v", c, x)
		}
	}
	if want := []int32{0, 1, 100, 101, 102, 103, 104, 105, 2, 3, 106, 107, 108, 109, 110, 111, 4, 5}; !slices.Equal(tokens, want) {
		t.Errorf("samples %v, want %v", tokens, want)
	}
	if want := []int32{1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1}; !slices.Equal(paired, want) {
		t.Errorf("paired %v, want %v", paired, want)
	}
	if _, ok := a.(Towered); ok {
		t.Error("a stream without towers is one with towers")
	}
	if _, err := NewAlternating(tokenOf{0, 5, true}, tokenOf{}, 6, 1); err == nil {
		t.Error("an epoch of less than a batch was accepted")
	}
	if _, err := NewAlternating(tokenOf{0, 5, true}, tokenOf{}, 2, 0); err == nil {
		t.Error("no batches of sentences were accepted")
	}
}
