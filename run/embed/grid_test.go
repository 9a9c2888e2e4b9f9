package embed

import (
	"slices"
	"testing"
)

// TestGrid: cells of 3 x 3 patches behind a class token, as means, and their boxes.
func TestGrid(t *testing.T) {
	g := grid{side: 3, cells: 2, first: 1, width: 1}
	tokens, dst := []float32{99, 1, 2, 3, 4, 5, 6, 7, 8, 9}, make([]float32, 4)
	g.pool(tokens, dst)
	if want := []float32{1, 2.5, 5.5, 7}; !slices.Equal(dst, want) {
		t.Errorf("cells %v, want %v", dst, want)
	}
	third := float32(1) / 3
	if got, want := g.boxes(), []float32{0, 0, third, third, third, 0, 1, third, 0, third, third, 1, third, third, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("boxes %v, want %v", got, want)
	}
}
