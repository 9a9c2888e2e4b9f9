package topk

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// pair has a key with ties and a place that settles them.
type pair struct{ key, place int }

func (a pair) Before(b pair) bool {
	return a.key > b.key || a.key == b.key && a.place < b.place
}

// TestListsKeepTheBest compares with a sort of all values, whatever order they arrive in.
func TestListsKeepTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for n := range 40 {
		for k := 1; k < 12; k++ {
			all := make([]pair, n)
			for i := range all {
				all[i] = pair{r.IntN(6), i}
			}
			r.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
			lists := NewLists[pair](3, k)
			lists[2] = New[pair](k)
			for i, x := range all {
				for l := range lists {
					lists[l].Add(x)
				}
				if full := lists[1].Full(); full != (i+1 >= k) {
					t.Fatalf("full after %d of %d: %v", i+1, k, full)
				}
			}
			slices.SortFunc(all, func(a, b pair) int {
				if a.Before(b) {
					return -1
				}
				return 1
			})
			want := all[:min(k, n)]
			for l := range lists {
				if n > 0 && lists[l].Worst() != want[len(want)-1] {
					t.Fatalf("list %d of %d values: worst %v, want %v", l, n, lists[l].Worst(), want[len(want)-1])
				}
				if len(lists[l].Items()) != len(want) {
					t.Fatalf("list %d has %d items, want %d", l, len(lists[l].Items()), len(want))
				}
				if got := lists[l].Sorted(); !slices.Equal(got, want) {
					t.Fatalf("list %d, best %d of %d: %v, want %v", l, k, n, got, want)
				}
			}
		}
	}
}
