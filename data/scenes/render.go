package scenes

import (
	"image"
	"math"
)

// Render draws the scene as a square picture of size pixels a side, with
// anti-aliased edges; size 0 means 64.
func (s Scene) Render(size int) *image.RGBA {
	if size == 0 {
		size = 64
	}
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	s.draw(img.Pix, size, 4)
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	return img
}

// RenderRGB draws the scene into dst, which holds size x size pixels of three
// bytes, row by row from the top left. It allocates nothing. It panics when dst
// is shorter than that.
func (s Scene) RenderRGB(dst []uint8, size int) {
	s.draw(dst[:size*size*3], size, 3)
}

// draw writes the picture into pix, step bytes a pixel. An edge pixel's share
// of the object is taken from the signed distance d of its centre to the
// outline in pixels: clamp(1/2 - d, 0, 1), exact for straight edges along the
// pixel grid and within a few percent for others.
func (s Scene) draw(pix []uint8, size, step int) {
	bg := s.Background.RGB()
	for i := 0; i+2 < len(pix); i += step {
		pix[i], pix[i+1], pix[i+2] = bg[0], bg[1], bg[2]
	}
	width := float64(size)
	for i := range s.Objects {
		o := &s.Objects[i]
		b := o.Box()
		x0, x1 := pixelRange(b.X0, b.X1, size)
		y0, y1 := pixelRange(b.Y0, b.Y1, size)
		distance := shapeDistance[o.Shape]
		radius := o.Radius * width
		for y := y0; y < y1; y++ {
			v := ((float64(y)+0.5)/width - o.Y) / o.Radius
			for x := x0; x < x1; x++ {
				u := ((float64(x)+0.5)/width - o.X) / o.Radius
				cover := 0.5 - distance(u, v)*radius
				if cover <= 0 {
					continue
				}
				p := pix[(y*size+x)*step:]
				if cover >= 1 {
					p[0], p[1], p[2] = o.RGB[0], o.RGB[1], o.RGB[2]
					continue
				}
				a := int32(cover*256 + 0.5)
				for c := range 3 {
					old := int32(p[c])
					p[c] = uint8(old + ((int32(o.RGB[c])-old)*a+128)>>8)
				}
			}
		}
	}
	s.Curtain.draw(pix, size, step)
}

// pixelRange returns the pixels that an extent from lo to hi can touch.
func pixelRange(lo, hi float64, size int) (int, int) {
	a := int(math.Floor(lo*float64(size))) - 1
	b := int(math.Ceil(hi*float64(size))) + 1
	return max(a, 0), min(b, size)
}
