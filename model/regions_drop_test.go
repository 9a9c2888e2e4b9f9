package model

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDropRegions: of many images about a fifth of the regions is left out, padding always is, the order is kept, every
// row is there once, and an image keeps at least one region.
func TestDropRegions(t *testing.T) {
	const most, images, drop = 6, 2000, .2
	r := rand.New(rand.NewPCG(1, 2))
	of, rows, lengths := make([]int32, images), make([]int32, images*most), make([]int32, images)
	all, kept := 0, 0
	for i := range of {
		of[i] = int32(r.IntN(most + 1))
		all += int(of[i])
	}
	dropRegions(r, of, rows, lengths, most, drop)
	for i, n := range lengths {
		kept += int(n)
		own := rows[i*most:][:most]
		if n > of[i] || n == 0 && of[i] > 0 || !slices.IsSorted(own[:n]) || n > 0 && own[n-1] >= int32(i*most)+of[i] {
			t.Fatalf("image %d of %d regions keeps %v", i, of[i], own[:n])
		}
		sorted := slices.Sorted(slices.Values(own))
		for k, row := range sorted {
			if row != int32(i*most+k) {
				t.Fatalf("image %d has rows %v", i, own)
			}
		}
	}
	if share := float64(kept) / float64(all); share < 1-drop-.02 || share > 1-drop+.05 {
		t.Errorf("%d of %d regions are kept", kept, all)
	}
	dropRegions(r, []int32{3}, rows, lengths, most, 1)
	if lengths[0] != 1 || rows[0] != 0 {
		t.Errorf("of three regions %d are left, the first of them %d", lengths[0], rows[0])
	}
}
