package transform

import (
	"fmt"
	"image"
)

// Image is an 8-bit RGB image: pixel (x, y) is at Pix[3*(y*W+x):], rows without
// gaps.
type Image struct {
	W, H int
	Pix  []uint8 // len 3*W*H
}

// NewImage returns a black image of w x h pixels.
func NewImage(w, h int) *Image {
	return &Image{W: w, H: h, Pix: make([]uint8, 3*w*h)}
}

// check says what is wrong with an image that a caller built by hand.
func (m *Image) check() error {
	switch {
	case m == nil:
		return fmt.Errorf("transform: no image (got nil)")
	case m.W <= 0 || m.H <= 0:
		return fmt.Errorf("transform: image size must be positive (got %dx%d)", m.W, m.H)
	case len(m.Pix) != 3*m.W*m.H:
		return fmt.Errorf("transform: an image of %dx%d has %d bytes (got %d)", m.W, m.H, 3*m.W*m.H, len(m.Pix))
	}
	return nil
}

// reshape makes m an image of w x h pixels of undefined content and keeps its
// memory where that is large enough.
func (m *Image) reshape(w, h int) {
	n := 3 * w * h
	if cap(m.Pix) < n {
		m.Pix = make([]uint8, n)
	}
	m.W, m.H, m.Pix = w, h, m.Pix[:n]
}

// Clone returns a copy that shares nothing with m.
func (m *Image) Clone() *Image {
	return &Image{W: m.W, H: m.H, Pix: append([]uint8(nil), m.Pix...)}
}

// FlipH mirrors m left to right, in place.
func (m *Image) FlipH() {
	for y := 0; y < m.H; y++ {
		row := m.Pix[3*y*m.W : 3*(y+1)*m.W]
		for a, b := 0, len(row)-3; a < b; a, b = a+3, b-3 {
			row[a], row[b] = row[b], row[a]
			row[a+1], row[b+1] = row[b+1], row[a+1]
			row[a+2], row[b+2] = row[b+2], row[a+2]
		}
	}
}

// NRGBA returns a copy of m as an image of the standard library.
func (m *Image) NRGBA() *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, m.W, m.H))
	for i := range m.W * m.H {
		copy(out.Pix[4*i:], m.Pix[3*i:3*i+3])
		out.Pix[4*i+3] = 255
	}
	return out
}
