package preview

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
)

// boxColours tell the boxes of an image apart.
var boxColours = []color.RGBA{{230, 60, 60, 255}, {40, 110, 230, 255}, {30, 160, 80, 255}, {240, 160, 20, 255},
	{150, 70, 200, 255}, {20, 180, 190, 255}}

// Boxes draws boxes on an image: left, top, right, bottom of each as shares of its width and height. A small image is
// enlarged so that lines do not cover it.
func Boxes(m image.Image, boxes []float32) image.Image {
	b := m.Bounds()
	scale := max(1, tileWidth/max(b.Dx(), b.Dy(), 1))
	out := image.NewRGBA(image.Rect(0, 0, b.Dx()*scale, b.Dy()*scale))
	draw.NearestNeighbor.Scale(out, out.Bounds(), m, b, draw.Src, nil)
	w, h := float64(out.Bounds().Dx()), float64(out.Bounds().Dy())
	line := max(1, int(max(w, h))/tileWidth)
	for i := 0; i+4 <= len(boxes); i += 4 {
		at := func(k int, size float64) int { return int(math.Round(float64(boxes[i+k]) * size)) }
		r := image.Rect(at(0, w), at(1, h), at(2, w), at(3, h))
		ink := image.NewUniform(boxColours[i/4%len(boxColours)])
		for _, side := range []image.Rectangle{
			{r.Min, image.Pt(r.Max.X, r.Min.Y+line)}, {image.Pt(r.Min.X, r.Max.Y-line), r.Max},
			{r.Min, image.Pt(r.Min.X+line, r.Max.Y)}, {image.Pt(r.Max.X-line, r.Min.Y), r.Max},
		} {
			draw.Draw(out, side, ink, image.Point{}, draw.Src)
		}
	}
	return out
}
