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
		r, g, b := int(p[0]), int(p[1]), int(p[2])
		hi, lo := max(r, g, b), min(r, g, b)
		c := hi - lo // the range of the channels
		if c == 0 {
			continue
		}
		// The sixth of the circle and how far the middle channel is below the largest
		// give the hue.
		order := (r-g)>>31&1 | (r-b)>>31&2 | (g-b)>>31&4 // r < g, r < b, g < b
		h := t.hue[order<<16|c<<8|(2*hi+lo-r-g-b)] + shift
		s := &t.saturation[hi<<8|c]
		a := &t.arcs[h]
		// Going down in odd sixths, up in even ones. Pillow rounds the product to
		// float32 on the way down only.
		x := float64(s.share * a.part)
		if a.up {
			x = float64(float64(s.share) * (1 - float64(a.part)))
		}
		middle := uint32(int32(float64(float64(hi)*(1-x)) + 0.5))
		w := uint32(hi)<<(a.hi&31) | middle<<(a.middle&31) | s.lowest<<(a.lowest&31)
		p[0], p[1], p[2] = uint8(w), uint8(w>>8), uint8(w>>16)
	}
}

// hues are the tables of the conversions.
type hues struct {
	hue        [8 << 16]uint8      // by order of the channels << 16 | their range << 8 | largest - middle
	saturation [1 << 16]saturation // by largest channel << 8 | range
	arcs       [256]arc            // by hue
}

// saturation is how far a colour is from gray.
type saturation struct {
	share  float32 // 0 to 1
	lowest uint32  // the lowest channel of such a colour
}

// arc is a hue: how far into which sixth of the circle.
type arc struct {
	part               float32
	up                 bool  // the middle channel grows with the hue
	hi, middle, lowest uint8 // how far to shift the largest channel, ...: 0 red, 8 green, 16 blue
}

// places are the channels that are largest, middle and lowest in each sixth of the
// circle, as shifts.
var places = [6][3]uint8{{0, 8, 16}, {8, 0, 16}, {8, 16, 0}, {16, 8, 0}, {16, 0, 8}, {0, 16, 8}}

// hueTables computes every value with the roundings of Pillow's Convert.c: float32
// where it has floats, float64 where a constant makes them doubles.
var hueTables = sync.OnceValue(func() *hues {
	t := &hues{}
	for c := 1; c < 256; c++ {
		for below := 0; below <= c; below++ {
			x := float32(below) / float32(c)
			// Where two channels are largest Pillow takes red, then green.
			for order, h := range [8]float32{
				0b000: 1 - x, // red, green, blue from the largest down
				0b100: x - 1, // red, blue, green
				0b001: float32(2 + float64(x) - 1),
				0b011: float32(2 + 1 - float64(x)),
				0b111: float32(4 + float64(x) - 1),
				0b110: float32(4 + 1 - float64(x)),
			} {
				h = float32(math.Mod(float64(h)/6+1, 1))
				t.hue[order<<16|c<<8|below] = uint8(min(float64(h)*255, 255))
			}
		}
		for hi := c; hi < 256; hi++ {
			s := float32(c) / float32(hi)
			share := float32(float64(uint8(min(float64(s)*255, 255))) / 255)
			t.saturation[hi<<8|c] = saturation{share, uint32(float64(float64(hi)*(1-float64(share))) + 0.5)}
		}
	}
	for h := range 256 {
		at := float64(h) * 6 / 255
		sixth := int(at) % 6
		t.arcs[h] = arc{float32(at - math.Floor(at)), sixth%2 == 0, places[sixth][0], places[sixth][1],
			places[sixth][2]}
	}
	return t
})
