package transform

import (
	"math"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// Fill is the value of the pixels that an affine operation brings in from
// outside the image.
const Fill = 128

// ShearX moves row y of src by factor*y pixels to the right.
func ShearX(dst, src *Image, factor float64) {
	warp(dst, src, [6]float64{1, -factor, 0, 0, 1, 0})
}

// ShearY moves column x of src by factor*x pixels down.
func ShearY(dst, src *Image, factor float64) {
	warp(dst, src, [6]float64{1, 0, 0, -factor, 1, 0})
}

// TranslateX moves src by offset pixels to the left.
func TranslateX(dst, src *Image, offset float64) {
	warp(dst, src, [6]float64{1, 0, offset, 0, 1, 0})
}

// TranslateY moves src by offset pixels up.
func TranslateY(dst, src *Image, offset float64) {
	warp(dst, src, [6]float64{1, 0, 0, 0, 1, offset})
}

// Rotate turns src by degrees counter-clockwise about (W/2, H/2).
func Rotate(dst, src *Image, degrees float64) {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	cx, cy := float64(src.W)/2, float64(src.H)/2
	// Inverse of the rotation: destination to source.
	warp(dst, src, [6]float64{
		cos, -sin, cx - cos*cx + sin*cy,
		sin, cos, cy - sin*cx - cos*cy,
	})
}

// warp writes to dst, for every pixel (x, y), the bilinear value of src at
// (m[0]*x + m[1]*y + m[2], m[3]*x + m[4]*y + m[5]); Fill counts as the value of
// every pixel outside src. Positions are rounded to 1/32 pixel.
func warp(dst, src *Image, m [6]float64) {
	dst.reshape(src.W, src.H)
	const scale = 1 << pixel.CoordBits
	const half = 1 << (pixel.CoordBits - pixel.InterBits - 1)
	w, h := src.W, src.H
	deltas := make([]int32, 2*w)
	xs, ys := deltas[:w], deltas[w:]
	for x := range w {
		xs[x] = round(m[0]*float64(x), scale)
		ys[x] = round(m[3]*float64(x), scale)
	}
	for y := range h {
		x0 := round(float64(m[1]*float64(y))+m[2], scale) + half
		y0 := round(float64(m[4]*float64(y))+m[5], scale) + half
		pixel.Warp(dst.Pix[3*w*y:3*w*(y+1)], src.Pix, w, h, xs, ys, x0, y0, Fill)
	}
}

func round(v float64, scale float64) int32 { return int32(math.RoundToEven(v * scale)) }
