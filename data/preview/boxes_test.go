package preview

import (
	"image"
	"image/color"
	"testing"
)

// TestBoxes: lines lie on the edges of a box, in the enlarged picture, and nowhere else.
func TestBoxes(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 96, 48))
	got := Boxes(m, []float32{.25, .5, .75, 1})
	if got.Bounds() != image.Rect(0, 0, 192, 96) {
		t.Fatalf("bounds %v", got.Bounds())
	}
	for at, want := range map[image.Point]color.Color{
		image.Pt(48, 48): boxColours[0], image.Pt(143, 95): boxColours[0], image.Pt(48, 80): boxColours[0], image.Pt(100, 48): boxColours[0],
		image.Pt(47, 48): color.RGBA{}, image.Pt(100, 70): color.RGBA{}, image.Pt(144, 60): color.RGBA{},
	} {
		if got.At(at.X, at.Y) != want {
			t.Errorf("%v is %v, want %v", at, got.At(at.X, at.Y), want)
		}
	}
}
