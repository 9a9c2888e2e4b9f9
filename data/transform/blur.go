package transform

import (
	"math"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// boxPasses is the number of box filters that stand for a Gaussian.
const boxPasses = 3

// Blur blurs m by a Gaussian of standard deviation sigma pixels, in place, as
// PIL.ImageFilter.GaussianBlur does: three box filters with fractional edges in each
// direction (Gwosdek et al. 2011), rounded to bytes after each; the edge pixels
// continue outside. A sigma of 0 or less, or one that is not finite, leaves m as it is.
func Blur(m *Image, sigma float64) { new(blurrer).gaussian(m, sigma) }

// blurrer keeps the memory of one blur for the next.
type blurrer struct {
	rows [2][]uint8 // a row with its continuation on both sides
	back Image
	sums []uint32
}

// box is a filter that weighs the 2 radius + 1 values in the middle with near and one
// more on either side with far, in units of 2^-24.
type box struct {
	radius    int
	near, far uint32
}

// boxOf returns the filter of which boxPasses make a Gaussian of sigma, with the
// roundings of Pillow's BoxBlur.c.
func boxOf(sigma float64) box {
	s := float32(sigma)
	variance := float32(s*s) / boxPasses
	length := float32(math.Sqrt(12*float64(variance) + 1))                                    // [7] of the paper
	whole := float32(math.Floor((float64(length) - 1) / 2))                                   // [11]
	part := float32(2*whole+1) * float32(float32(whole*float32(whole+1))-float32(3*variance)) // [14]
	part /= 6 * float32(variance-float32((whole+1)*(whole+1)))
	r := whole + part
	b := box{radius: int(r)}
	b.near = uint32(float32(1<<24) / float32(float32(r*2)+1))
	b.far = (1<<24 - uint32(2*b.radius+1)*b.near) / 2
	return b
}

func (z *blurrer) gaussian(m *Image, sigma float64) {
	if !(sigma > 0) || math.IsInf(sigma, 1) {
		return
	}
	b := boxOf(sigma)
	z.sums = resized(z.sums, 3*m.W)
	z.across(m, b)
	z.back.reshape(m.W, m.H)
	for range boxPasses {
		z.down(&z.back, m, b)
		m.Pix, z.back.Pix = z.back.Pix, m.Pix
	}
}

// across filters the rows of m boxPasses times.
func (z *blurrer) across(m *Image, b box) {
	n, edge := 3*m.W, 3*(b.radius+1)
	for i := range z.rows {
		z.rows[i] = resized(z.rows[i], n+2*edge)
	}
	src, dst := z.rows[0], z.rows[1]
	for y := range m.H {
		row := m.Pix[y*n : (y+1)*n]
		copy(src[edge:], row)
		for pass := range boxPasses {
			for i := range edge {
				src[i] = src[edge+i%3]
				src[edge+n+i] = src[edge+n-3+i%3]
			}
			to := dst[edge : edge+n]
			if pass == boxPasses-1 {
				to = row
			}
			b.mix(to, z.sums, func(k int) []uint8 { return src[edge+3*k : edge+3*k+n] })
			src, dst = dst, src
		}
	}
}

// down filters the columns of src once.
func (z *blurrer) down(dst, src *Image, b box) {
	n := 3 * src.W
	for y := range src.H {
		b.mix(dst.Pix[y*n:(y+1)*n], z.sums, func(k int) []uint8 {
			at := min(max(y+k, 0), src.H-1)
			return src.Pix[at*n : (at+1)*n]
		})
	}
}

// mix writes the filtered values to dst; at(k) are the values at distance k.
func (b box) mix(dst []uint8, sums []uint32, at func(k int) []uint8) {
	switch b.radius {
	case 0:
		pixel.Box3(dst, at(-1), at(0), at(1), b.near, b.far)
	case 1: // all that a sigma below 2.4 needs
		pixel.Box5(dst, at(-2), at(-1), at(0), at(1), at(2), b.near, b.far)
	default:
		n := len(dst)
		sums = sums[:n]
		clear(sums)
		for k := -b.radius; k <= b.radius; k++ {
			for i, v := range at(k)[:n] {
				sums[i] += uint32(v)
			}
		}
		first, last := at(-b.radius - 1)[:n], at(b.radius + 1)[:n]
		for i := range dst {
			dst[i] = uint8((sums[i]*b.near + (uint32(first[i])+uint32(last[i]))*b.far + 1<<23) >> 24)
		}
	}
}
