package explain

import (
	"image"
	"image/color"
	"testing"
)

// TestOutline: frames lie at the edges of their boxes, cut off at the picture's, the last on top.
func TestOutline(t *testing.T) {
	red, blue := color.RGBA{255, 0, 0, 255}, color.RGBA{0, 0, 255, 255}
	m := image.NewRGBA(image.Rect(0, 0, 20, 10))
	Outline(m, []Outlined{{Box{0.25, 0.2, 0.75, 0.8}, red, 1}, {Box{0.5, -1, 3, 0.5}, blue, 2}})
	for at, want := range map[image.Point]color.RGBA{
		{X: 5, Y: 2}: red, {X: 5, Y: 7}: red, {X: 6, Y: 3}: {}, {X: 4, Y: 2}: {}, {X: 14, Y: 6}: red, {X: 9, Y: 7}: red, {X: 15, Y: 7}: {},
		{X: 10, Y: 2}: blue, {X: 11, Y: 3}: blue, {X: 12, Y: 2}: red, {X: 19, Y: 0}: blue, {X: 18, Y: 4}: blue, {X: 12, Y: 5}: {},
	} {
		if got := m.RGBAAt(at.X, at.Y); got != want {
			t.Errorf("%v is %v, want %v", at, got, want)
		}
	}
}
