package transform

import (
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestFit: sides shrink together, none to nothing, and what is small stays.
func TestFit(t *testing.T) {
	for _, c := range [][4]int{{40, 20, 10, 5}, {20, 40, 5, 10}, {10, 3, 10, 3}, {500, 2, 10, 1}} {
		m := &Image{W: c[0], H: c[1], Pix: make([]uint8, 3*c[0]*c[1])}
		if got := check.Get(Fit(m, 10))(t); got.W != c[2] || got.H != c[3] {
			t.Errorf("%v: %d x %d", c, got.W, got.H)
		}
	}
}
