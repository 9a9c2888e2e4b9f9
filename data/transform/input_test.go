package transform

import "testing"

// TestSeen: the whole of an image that is squashed, the middle of one that is cropped.
func TestSeen(t *testing.T) {
	for _, c := range []struct {
		in                  Input
		w, h                int
		x, y, width, height float64
	}{
		{Input{}, 300, 100, 0, 0, 300, 100},
		{Input{Crop: true}, 300, 100, 100, 0, 100, 100},
		{Input{Crop: true}, 100, 300, 0, 100, 100, 100},
		{Input{Resized: 100}, 300, 100, 75, 25, 150, 50},
		{Input{Crop: true, Resized: 100}, 300, 100, 125, 25, 50, 50},
		{Input{Crop: true}, 64, 64, 0, 0, 64, 64},
		{Input{Crop: true}, 53, 50, 2, 0, 50, 50},
		{Input{Crop: true, Down: true}, 53, 50, 1, 0, 50, 50},
		{Input{Crop: true, Down: true}, 50, 55, 0, 2, 50, 50},
	} {
		if x, y, w, h := c.in.Seen(c.w, c.h, 50); x != c.x || y != c.y || w != c.width || h != c.height {
			t.Errorf("%+v of %d x %d: %v, %v, %v x %v, want %v, %v, %v x %v", c.in, c.w, c.h, x, y, w, h, c.x, c.y, c.width, c.height)
		}
	}
}
