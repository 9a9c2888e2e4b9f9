package explain

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
)

// Map is what each patch of an image adds to a score, row by row from the top left. What is below 0
// is drawn as 0.
type Map struct {
	Values        []float64 // (Rows, Columns)
	Rows, Columns int
}

// Most returns the largest value, at least 0.
func (m Map) Most() float64 {
	most := 0.0
	for _, v := range m.Values {
		most = max(most, v)
	}
	return most
}

// at interpolates between the middles of the patches: x and y from 0 to 1 over the map.
func (m Map) at(x, y float64) float64 {
	place := func(v float64, n int) (i, j int, f float64) {
		v = min(max(v*float64(n)-0.5, 0), float64(n-1))
		i = int(v)
		f = v - float64(i)
		return i, min(i+1, n-1), f * f * (3 - 2*f) // smooth, so that a bright patch is round
	}
	c0, c1, fx := place(x, m.Columns)
	r0, r1, fy := place(y, m.Rows)
	v := func(r, c int) float64 { return max(m.Values[r*m.Columns+c], 0) }
	top := v(r0, c0)*(1-fx) + v(r0, c1)*fx
	return top*(1-fy) + (v(r1, c0)*(1-fx)+v(r1, c1)*fx)*fy
}

// Small images are enlarged for a picture until the shorter side has leastSide pixels, as far as the
// longer one keeps below mostSide.
const (
	leastSide = 320
	mostSide  = 1600
)

// Overlay returns img in grey with a map in colour over the part that the model has seen, a rectangle
// in pixels of img that may end between two; the rest is darker. The largest value of the map is
// the brightest. Small images are enlarged as by Enlarged.
func Overlay(img image.Image, m Map, x, y, width, height float64) *image.RGBA {
	out := Enlarged(img)
	f := float64(out.Rect.Dx()) / float64(img.Bounds().Dx())
	most := m.Most()
	for py := range out.Rect.Dy() {
		for px := range out.Rect.Dx() {
			p := out.Pix[out.PixOffset(px, py):]
			grey := 0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2])
			u, v := ((float64(px)+0.5)/f-x)/width, ((float64(py)+0.5)/f-y)/height
			if u < 0 || u >= 1 || v < 0 || v >= 1 {
				for c := range 3 {
					p[c] = uint8(grey * 0.35)
				}
				continue
			}
			heat := 0.0
			if most > 0 {
				heat = m.at(u, v) / most
			}
			if math.IsNaN(heat) { // of a largest value that is infinite
				heat = 0
			}
			colour, share := Heat(heat), 0.85*math.Pow(heat, 0.75)
			for c, h := range [3]uint8{colour.R, colour.G, colour.B} {
				p[c] = uint8(grey*(1-share) + float64(h)*share + 0.5)
			}
		}
	}
	return out
}

// Enlarged returns a copy of img, of one with a side below 320 pixels enlarged by the whole factor
// that brings it there, or to at most 1600 pixels on the other side.
func Enlarged(img image.Image) *image.RGBA {
	b := img.Bounds()
	f := 1
	if short := min(b.Dx(), b.Dy()); short < leastSide && short > 0 {
		f = max(1, min((leastSide+short-1)/short, mostSide/max(b.Dx(), b.Dy())))
	}
	out := image.NewRGBA(image.Rect(0, 0, f*b.Dx(), f*b.Dy()))
	draw.NearestNeighbor.Scale(out, out.Rect, img, b, draw.Src, nil)
	return out
}

// Reduced returns img, made smaller where a side has more than the given pixels.
func Reduced(img image.Image, most int) image.Image {
	b := img.Bounds()
	long := max(b.Dx(), b.Dy())
	if long <= most {
		return img
	}
	out := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()*most/long), max(1, b.Dy()*most/long)))
	draw.CatmullRom.Scale(out, out.Rect, img, b, draw.Src, nil)
	return out
}

// ramp is a scale of even steps in lightness, from dark violet to pale yellow, which readers who see
// few colours can tell apart too.
var ramp = [...][3]float64{{20, 11, 52}, {87, 16, 110}, {148, 38, 103}, {205, 65, 71}, {243, 120, 25}, {251, 182, 26},
	{249, 251, 146}}

// Heat returns the colour of a value from 0 to 1. One that is not a number has that of 0.
func Heat(v float64) color.RGBA {
	if math.IsNaN(v) {
		v = 0
	}
	v = min(max(v, 0), 1) * float64(len(ramp)-1)
	i := min(int(v), len(ramp)-2)
	f := v - float64(i)
	c := func(k int) uint8 { return uint8(ramp[i][k]*(1-f) + ramp[i+1][k]*f + 0.5) }
	return color.RGBA{c(0), c(1), c(2), 255}
}
