package captioning

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
)

// TestCaptionedTokens: the first tokens of a caption take part, as many as are asked for, one too.
func TestCaptionedTokens(t *testing.T) {
	b := batch.New(2)
	b.SetInts(batch.Tokens, []int32{1, 2, 3, 4, 5, 6, 0, 0})
	b.SetInts(batch.Lengths, []int32{4, 2})
	for most, want := range map[int][2][]int32{0: {{1, 2, 3, 4}, {5, 6}}, 1: {{1}, {5}}, 2: {{1, 2}, {5, 6}}, 3: {{1, 2, 3}, {5, 6}}, 9: {{1, 2, 3, 4}, {5, 6}}} {
		(&Loss{Tokens: most}).each(&feed.Step{Batch: b}, func(i int, tokens []int32) {
			if !slices.Equal(tokens, want[i]) {
				t.Errorf("of %d tokens of caption %d take part %v, want %v", most, i, tokens, want[i])
			}
		})
	}
}
