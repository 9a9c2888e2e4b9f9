package eval

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
)

func TestNeighbourLists(t *testing.T) {
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 2}))(t)
	defer e.Close()
	// Directions at 0, 10, 25 and 90 degrees, of several lengths.
	x := []float32{2, 0, .985, .174, 4.53, 2.11, 0, 1}
	got, err := NeighbourLists(t.Context(), e, x, x, 4, 2)
	if want := []int32{1, 2, 0, 2, 1, 0, 2, 1}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if o := ListOverlap([]int32{1, 2, 0, 2}, []int32{2, 3, 1, 3}, 2); o != .25 {
		t.Errorf("overlap %v, want 1/4", o)
	}
	for k, right := range map[int][]int32{2: nil, 0: {1, 2}, -1: {1, 2}} {
		if o := ListOverlap(right, right, k); o != 0 {
			t.Errorf("overlap of lists of %d entries, %v in all: %v, want 0", k, right, o)
		}
	}
	if _, err := NeighbourLists(t.Context(), e, x, x[:4], 4, 2); err == nil {
		t.Error("rows of another width are taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NeighbourLists(ctx, e, x, x, 4, 2); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
