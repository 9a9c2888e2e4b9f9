package data

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
)

// padded is letters with padding of another id.
type padded struct{ letters }

func (padded) PadID() int32 { return 7 }

func TestTextsArePaddedAsTheirTokenizerSays(t *testing.T) {
	texts := Texts{Tokenizer: padded{}, Tokens: 5}
	b := batch.New(3, texts.Columns()...)
	for i, s := range []string{"ab", "", "abcdef"} {
		texts.Fill(s, b.Row(i))
	}
	if got, want := b.Ints(batch.Tokens), []int32{2, 'a', 'b', 7, 7, 2, 7, 7, 7, 7, 2, 'a', 'b', 'c', 'd'}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := b.Ints(batch.Lengths); !slices.Equal(got, []int32{3, 1, 5}) {
		t.Errorf("lengths %v", got)
	}
}
