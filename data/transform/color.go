package transform

import "github.com/geoalign/geoalign/data/internal/pixel"

// AutoContrast stretches every channel of m so that its darkest value becomes 0
// and its brightest 255 (PIL.ImageOps.autocontrast, cutoff 0), in place.
func AutoContrast(m *Image) {
	lo, hi := [3]uint8{255, 255, 255}, [3]uint8{}
	for i := 0; i+3 <= len(m.Pix); i += 3 {
		p := m.Pix[i : i+3 : i+3]
		lo[0], hi[0] = min(lo[0], p[0]), max(hi[0], p[0])
		lo[1], hi[1] = min(lo[1], p[1]), max(hi[1], p[1])
		lo[2], hi[2] = min(lo[2], p[2]), max(hi[2], p[2])
	}
	tables := identity
	for c := range tables {
		if hi[c] <= lo[c] {
			continue
		}
		scale := 255 / (float64(hi[c]) - float64(lo[c]))
		offset := -float64(lo[c]) * scale
		for v := range tables[c] {
			// The conversion keeps the product rounded before the sum on
			// machines that would fuse them.
			tables[c][v] = uint8(min(max(float64(float64(v)*scale)+offset, 0), 255))
		}
	}
	m.lookUp(&tables)
}

// Equalize makes the histogram of every channel of m as flat as a mapping of
// values can (PIL.ImageOps.equalize), in place.
func Equalize(m *Image) {
	var hist [3][256]int32
	for i := 0; i+3 <= len(m.Pix); i += 3 {
		p := m.Pix[i : i+3 : i+3]
		hist[0][p[0]]++
		hist[1][p[1]]++
		hist[2][p[2]]++
	}
	tables := identity
	for c := range tables {
		sum, last := int32(0), int32(0)
		for _, n := range hist[c] {
			sum += n
			if n > 0 {
				last = n
			}
		}
		step := (sum - last) / 255
		if step == 0 {
			continue
		}
		n := step / 2
		for v := range tables[c] {
			tables[c][v] = uint8(min(n/step, 255))
			n += hist[c][v]
		}
	}
	m.lookUp(&tables)
}

// Brightness multiplies every value of m by factor (PIL.ImageEnhance.Brightness),
// in place.
func Brightness(m *Image, factor float64) { pixel.Shade(m.Pix, 0, float32(factor)) }

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

// identity keeps every value of every channel.
var identity = func() (t [3][256]uint8) {
	for c := range t {
		for v := range t[c] {
			t[c][v] = uint8(v)
		}
	}
	return t
}()

// lookUp replaces the values of every channel by their table entries.
func (m *Image) lookUp(tables *[3][256]uint8) {
	pix := m.Pix
	for len(pix) >= 12 {
		p := pix[:12:12]
		p[0], p[1], p[2] = tables[0][p[0]], tables[1][p[1]], tables[2][p[2]]
		p[3], p[4], p[5] = tables[0][p[3]], tables[1][p[4]], tables[2][p[5]]
		p[6], p[7], p[8] = tables[0][p[6]], tables[1][p[7]], tables[2][p[8]]
		p[9], p[10], p[11] = tables[0][p[9]], tables[1][p[10]], tables[2][p[11]]
		pix = pix[12:]
	}
	for i, v := range pix {
		pix[i] = tables[i%3][v]
	}
}
