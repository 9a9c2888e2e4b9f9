package transform

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// twoPasses resizes with all rows between the passes at once.
func twoPasses(m *Image, box Rect, to Window, bilinear bool) *Image {
	var h, v taps
	var rows pixel.RowFilter
	h.compute(axis{box.W, to.W, to.X, to.Width, bilinear})
	v.compute(axis{box.H, to.H, to.Y, to.Height, bilinear})
	rows.Set(&h.Taps)
	row := 3 * to.Width
	middle := make([]uint8, row*box.H)
	rows.Apply(middle, m.Pix[3*(box.Y*m.W+box.X):], box.H, 3*m.W)
	out := NewImage(to.Width, to.Height)
	for y := range to.Height {
		first, k := v.at(y)
		pixel.MixRows(out.Pix[row*y:row*(y+1)], middle[row*first:], row, k, nil)
	}
	return out
}

// TestResizeInBands: the rows between the passes are made band by band, and the pixels are those of all rows at once.
func TestResizeInBands(t *testing.T) {
	var z resizer // one for all: its memory is of the cases before
	for _, c := range []struct {
		w, h int
		box  Rect
		to   Window
	}{
		{640, 480, Rect{0, 0, 640, 480}, square(256)},
		{333, 517, Rect{13, 17, 300, 451}, square(224)},
		{1500, 1999, Rect{0, 0, 1500, 1999}, square(64)},
		{40, 9001, Rect{0, 0, 40, 9001}, square(96)},
		{1, 20000, Rect{0, 0, 1, 20000}, square(32)},
		{20000, 1, Rect{0, 0, 20000, 1}, square(32)},
		{5, 3, Rect{0, 0, 5, 3}, square(300)},
		{7, 3000, Rect{0, 0, 7, 3000}, Window{W: 1000, H: 1, Width: 1000, Height: 1}},
		{100, 3001, Rect{0, 0, 100, 3001}, Window{W: 256, H: 7682, Y: 3713, Width: 256, Height: 256}},
	} {
		m := noise(c.w, c.h)
		for _, bilinear := range []bool{false, true} {
			want := twoPasses(m, c.box, c.to, bilinear)
			for _, flip := range []bool{false, true} {
				t.Run(fmt.Sprintf("%dx%d/%v/%v", c.w, c.h, bilinear, flip), func(t *testing.T) {
					var got Image
					z.bilinear = bilinear
					z.resize(&got, m, c.box, c.to, flip)
					if flip {
						got.FlipH()
					}
					if !bytes.Equal(got.Pix, want.Pix) {
						t.Error("pixels differ from those of two passes over the whole picture")
					}
				})
			}
		}
	}
}

// TestResizeMemory: a resize takes memory of its output and of a band, however long its picture is.
func TestResizeMemory(t *testing.T) {
	const most = 4 << 20
	for _, c := range []struct{ w, h int }{{1, 65535}, {65535, 1}, {3, 65535}, {65535, 3}} {
		m := noise(c.w, c.h)
		for _, crop := range []bool{false, true} {
			var z resizer
			var out Image
			z.resize(&out, m, whole(m), Input{Crop: crop}.window(c.w, c.h, 384), false)
			if n := cap(z.middle) + 4*(cap(z.sums)+cap(z.horizontal.Coef)+cap(z.vertical.Coef)); n > most {
				t.Errorf("%dx%d, crop %v: %d bytes", c.w, c.h, crop, n)
			}
		}
	}
}
