package transform

import "github.com/geoalign/geoalign/data/internal/pixel"

// AutoContrast stretches every channel of m so that its darkest value becomes 0
// and its brightest 255 (PIL.ImageOps.autocontrast, cutoff 0), in place.
func AutoContrast(m *Image) {
	for c := 0; c < 3; c++ {
		lo, hi := uint8(255), uint8(0)
		for i := c; i < len(m.Pix); i += 3 {
			lo, hi = min(lo, m.Pix[i]), max(hi, m.Pix[i])
		}
		if hi <= lo {
			continue
		}
		scale := 255 / (float64(hi) - float64(lo))
		offset := -float64(lo) * scale
		var table [256]uint8
		for v := range table {
			// The conversion keeps the product rounded before the sum on
			// machines that would fuse them.
			table[v] = uint8(min(max(float64(float64(v)*scale)+offset, 0), 255))
		}
		m.lookUp(c, &table)
	}
}

// Equalize makes the histogram of every channel of m as flat as a mapping of
// values can (PIL.ImageOps.equalize), in place.
func Equalize(m *Image) {
	for c := 0; c < 3; c++ {
		var hist [256]int
		for i := c; i < len(m.Pix); i += 3 {
			hist[m.Pix[i]]++
		}
		sum, last := 0, 0
		for _, n := range hist {
			sum += n
			if n > 0 {
				last = n
			}
		}
		step := (sum - last) / 255
		if step == 0 {
			continue
		}
		var table [256]uint8
		n := step / 2
		for v := range table {
			table[v] = uint8(min(n/step, 255))
			n += hist[v]
		}
		m.lookUp(c, &table)
	}
}

// Brightness multiplies every value of m by factor (PIL.ImageEnhance.Brightness),
// in place.
func Brightness(m *Image, factor float64) {
	var table [256]uint8
	for v := range table {
		table[v] = pixel.Blend(0, float32(v), float32(factor))
	}
	for i, v := range m.Pix {
		m.Pix[i] = table[v]
	}
}

// Sharpness writes src, moved away from its smoothed self by factor, to dst
// (PIL.ImageEnhance.Sharpness): smooth + factor*(src - smooth) with the 3x3
// kernel of 1/13 and 5/13 in the middle. The outermost pixels stay as they are.
func Sharpness(dst, src *Image, factor float64) {
	dst.reshape(src.W, src.H)
	copy(dst.Pix, src.Pix)
	if src.W < 3 || src.H < 3 {
		return
	}
	stride := 3 * src.W
	row := func(y int) []uint8 { return src.Pix[y*stride : (y+1)*stride] }
	for y := 1; y < src.H-1; y++ {
		pixel.Sharpen(dst.Pix[y*stride:(y+1)*stride], row(y-1), row(y), row(y+1), float32(factor))
	}
}

// lookUp replaces the values of channel c by their table entries.
func (m *Image) lookUp(c int, table *[256]uint8) {
	for i := c; i < len(m.Pix); i += 3 {
		m.Pix[i] = table[m.Pix[i]]
	}
}
