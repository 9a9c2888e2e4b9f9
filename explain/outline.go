package explain

import (
	"image"
	"image/color"
	"math"
)

// Outlined is a box with a frame.
type Outlined struct {
	Box
	Colour color.RGBA
	Width  int // of the frame, in pixels
}

// Outline draws frames over a picture, the last on top. A frame lies within its box, as far as it lies in the picture.
func Outline(m *image.RGBA, list []Outlined) {
	w, h := float64(m.Rect.Dx()), float64(m.Rect.Dy())
	at := func(share, length float64) int { return int(math.Round(min(max(share, 0), 1) * length)) }
	for _, x := range list {
		b := x.Box
		frame(m, image.Rect(at(b[0], w), at(b[1], h), at(b[2], w), at(b[3], h)), x.Colour, x.Width)
	}
}
