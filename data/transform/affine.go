package transform

import "math"

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

// Fixed point of warp: coordinates in 1/1024 pixel, weights in 1/32.
const (
	coordBits = 10
	interBits = 5
)

// warp writes to dst, for every pixel (x, y), the bilinear value of src at
// (m[0]*x + m[1]*y + m[2], m[3]*x + m[4]*y + m[5]); Fill counts as the value of
// every pixel outside src. Positions are rounded to 1/32 pixel.
func warp(dst, src *Image, m [6]float64) {
	dst.reshape(src.W, src.H)
	const scale = 1 << coordBits
	const half = 1 << (coordBits - interBits - 1)
	w, h := src.W, src.H
	for y := 0; y < h; y++ {
		x0 := round(float64(m[1]*float64(y))+m[2], scale) + half
		y0 := round(float64(m[4]*float64(y))+m[5], scale) + half
		out := dst.Pix[3*w*y : 3*w*(y+1)]
		for x := 0; x < w; x++ {
			fx := (x0 + round(m[0]*float64(x), scale)) >> (coordBits - interBits)
			fy := (y0 + round(m[3]*float64(x), scale)) >> (coordBits - interBits)
			sx, ax := fx>>interBits, fx&(1<<interBits-1)
			sy, ay := fy>>interBits, fy&(1<<interBits-1)
			o := out[3*x : 3*x+3 : 3*x+3]
			if sx < -1 || sy < -1 || sx >= w || sy >= h {
				o[0], o[1], o[2] = Fill, Fill, Fill
				continue
			}
			w11 := ax * ay
			w01 := ax<<interBits - w11 // right, upper
			w10 := ay<<interBits - w11 // left, lower
			w00 := 1<<(2*interBits) - w01 - w10 - w11
			if sx >= 0 && sy >= 0 && sx < w-1 && sy < h-1 {
				p := src.Pix[3*(sy*w+sx):]
				q := p[3*w : 3*w+6 : 3*w+6]
				p = p[:6:6]
				for c := range o {
					o[c] = uint8((w00*int(p[c]) + w01*int(p[c+3]) + w10*int(q[c]) + w11*int(q[c+3]) + 1<<(2*interBits-1)) >> (2 * interBits))
				}
				continue
			}
			for c := range o {
				o[c] = uint8((w00*src.at(sx, sy, c) + w01*src.at(sx+1, sy, c) + w10*src.at(sx, sy+1, c) + w11*src.at(sx+1, sy+1, c) + 1<<(2*interBits-1)) >> (2 * interBits))
			}
		}
	}
}

// at is channel c of the pixel (x, y), or Fill outside.
func (m *Image) at(x, y, c int) int {
	if x < 0 || y < 0 || x >= m.W || y >= m.H {
		return Fill
	}
	return int(m.Pix[3*(y*m.W+x)+c])
}

func round(v float64, scale float64) int { return int(math.RoundToEven(v * scale)) }
