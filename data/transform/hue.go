package transform

import (
	"math"
	"sync"
)

// Hue turns the hue of every pixel of m by turns of the colour circle, -0.5 to 0.5,
// in place: to HSV in bytes and back, as torchvision does with Pillow. The circle has
// 255 steps there and 256 here, as in Pillow, so that even 0 changes some values by a
// little.
func Hue(m *Image, turns float64) {
	t := hueTables()
	shift := uint8(int32(turns * 255)) // torchvision lets the bytes wrap around
	for i := 0; i+3 <= len(m.Pix); i += 3 {
		p := m.Pix[i : i+3 : i+3]
		r, g, b := p[0], p[1], p[2]
		hi, lo := max(r, g, b), min(r, g, b)
		if hi == lo {
			continue
		}
		// The sixth of the circle in which the colour lies and how far its middle
		// channel is below the largest.
		c := int(hi - lo)
		var sector, below int
		switch {
		case r == hi && b == lo:
			sector, below = 0, int(hi-g)
		case r == hi:
			sector, below = 5, int(hi-b)
		case g == hi && b == lo:
			sector, below = 1, int(hi-r)
		case g == hi:
			sector, below = 2, int(hi-b)
		case r == lo:
			sector, below = 3, int(hi-g)
		default:
			sector, below = 4, int(hi-r)
		}
		h := t.hue[sector][c<<8|below] + shift
		s := t.saturation[int(hi)<<8|c]
		if s == 0 {
			p[0], p[1], p[2] = hi, hi, hi
			continue
		}
		f, fs, v := t.fraction[h], t.share[s], float64(hi)
		lowest := uint8(float64(v*(1-float64(fs))) + 0.5)
		falling := uint8(float64(v*(1-float64(fs*f))) + 0.5)
		rising := uint8(float64(v*(1-float64(float64(fs)*(1-float64(f))))) + 0.5)
		switch t.sixth[h] {
		case 0:
			p[0], p[1], p[2] = hi, rising, lowest
		case 1:
			p[0], p[1], p[2] = falling, hi, lowest
		case 2:
			p[0], p[1], p[2] = lowest, hi, rising
		case 3:
			p[0], p[1], p[2] = lowest, falling, hi
		case 4:
			p[0], p[1], p[2] = rising, lowest, hi
		default:
			p[0], p[1], p[2] = hi, lowest, falling
		}
	}
}

// hues are the tables of the conversions.
type hues struct {
	hue        [6][1 << 16]uint8 // by sector, range of the channels << 8 | largest - middle channel
	saturation [1 << 16]uint8    // by largest channel << 8 | range
	sixth      [256]uint8        // of the circle, by hue
	fraction   [256]float32      // of the sixth, by hue
	share      [256]float32      // saturation from 0 to 1
}

// hueTables computes every value with the roundings of Pillow's Convert.c: float32
// where it has floats, float64 where a constant makes them doubles.
var hueTables = sync.OnceValue(func() *hues {
	t := &hues{}
	for c := 1; c < 256; c++ {
		for below := 0; below <= c; below++ {
			x := float32(below) / float32(c)
			for sector, h := range [6]float32{
				1 - x,
				float32(2 + float64(x) - 1),
				float32(2 + 1 - float64(x)),
				float32(4 + float64(x) - 1),
				float32(4 + 1 - float64(x)),
				x - 1,
			} {
				h = float32(math.Mod(float64(h)/6+1, 1))
				t.hue[sector][c<<8|below] = uint8(min(float64(h)*255, 255))
			}
		}
		for hi := c; hi < 256; hi++ {
			s := float32(c) / float32(hi)
			t.saturation[hi<<8|c] = uint8(min(float64(s)*255, 255))
		}
	}
	for h := range 256 {
		at := float64(h) * 6 / 255
		t.sixth[h] = uint8(int(at) % 6)
		t.fraction[h] = float32(at - math.Floor(at))
		t.share[h] = float32(float64(h) / 255)
	}
	return t
})
