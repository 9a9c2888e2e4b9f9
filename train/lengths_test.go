package train

import (
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
)

// TestLengthsResume: a session with steps of several lengths goes on in the middle of an epoch, and of an update's
// kind of micro-batches, with the bits of one that was not interrupted, with dropout and masks; its updates differ from
// those of one length in their samples alone, of which an epoch has the same.
func TestLengthsResume(t *testing.T) {
	for _, sets := range [][]string{nil, {"train.accumulate_steps=2"}, {"compute.precision=bf16"}, {"compute.recompute=true"}} {
		sets = append([]string{"data.token_lengths=[6, 8, 10]", "data.scenes.epoch_samples=60", "model.text.dropout=0.1"}, sets...)
		s := small(t, 0, 0, sets...)
		for i := range 5 {
			s.must(t, i)
		}
		sameResumed(t, s, 5, sets...)
	}
}

// TestLengthsOfBatches: with data.token_lengths an epoch has the samples that it has without, and batches of fewer places.
func TestLengthsOfBatches(t *testing.T) {
	read := func(sets ...string) (ids map[int32]int, places int) {
		s := small(t, 0, 0, append([]string{"data.scenes.epoch_samples=640", "train.batch_size=8"}, sets...)...)
		ids = map[int32]int{}
		for range 80 {
			b := check.Get(s.loader.Next(t.Context()))(t)
			places += longestOf(b)
			for _, id := range b.Ints("ids") {
				ids[id]++
			}
			s.loader.Recycle(b)
		}
		return ids, places
	}
	want, long := read()
	got, short := read("data.token_lengths=[6, 8, 10]")
	if len(got) != len(want) || 10*short > 9*long {
		t.Errorf("%d samples of %d places, %d of %d with one length", len(got), short, len(want), long)
	}
	for id, n := range want {
		if got[id] != n {
			t.Errorf("sample %d is there %d times, want %d", id, got[id], n)
		}
	}
}

// longestOf is the number of tokens of the longest text of a batch.
func longestOf(b *data.Batch) int {
	most := int32(0)
	for _, n := range b.Ints("lengths") {
		most = max(most, n)
	}
	return int(most)
}
