package pixel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// line is a row of positions along a line of random slope through the picture.
func line(r *rand.Rand, n, w, h int) (xs, ys []int32, x0, y0 int32) {
	xs, ys = make([]int32, n), make([]int32, n)
	dx, dy := 1.0, 0.0
	switch r.IntN(4) {
	case 0: // a shift
	case 1:
		dy = r.Float64() - 0.5
	case 2:
		dy, dx = math.Sincos(r.Float64() * 2 * math.Pi)
	case 3:
		dx, dy = 4*r.Float64()-2, 4*r.Float64()-2
	}
	for i := range n {
		xs[i] = int32(math.RoundToEven(float64(i) * dx * (1 << CoordBits)))
		ys[i] = int32(math.RoundToEven(float64(i) * dy * (1 << CoordBits)))
	}
	return xs, ys, int32((r.Float64()*1.6 - 0.3) * float64(w<<CoordBits)), int32((r.Float64()*1.6 - 0.3) * float64(h<<CoordBits))
}

func TestWarpAgreesWithPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for i := range 3000 {
			w, h, n := 1+r.IntN(80), 1+r.IntN(80), r.IntN(90)
			if i < 50 {
				w, h = 1+i%7, 1+i/7
			}
			src := noise(r, 3*w*h)
			xs, ys, x0, y0 := line(r, n, w, h)
			got, intact := guarded(3 * n)
			want := make([]uint8, 3*n)
			Warp(got, src, w, h, xs, ys, x0, y0, 128)
			warpPlain(want, src, w, h, xs, ys, x0, y0, 128)
			if !slices.Equal(got, want) || !intact() {
				t.Fatalf("%d pixels of %dx%d from (%d, %d): differs, or wrote outside", n, w, h, x0, y0)
			}
		}
	})
}

func TestWarpFillsOutside(t *testing.T) {
	src := noise(rand.New(rand.NewPCG(1, 1)), 3*20*20)
	xs, ys := make([]int32, 40), make([]int32, 40)
	for i := range xs {
		xs[i] = int32(i) << CoordBits
	}
	dst := make([]uint8, 120)
	Warp(dst, src, 20, 20, xs, ys, -10<<CoordBits, 3<<CoordBits, 7)
	for i := range 40 {
		want := []uint8{7, 7, 7}
		if x := i - 10; x >= 0 && x < 20 {
			want = src[3*(3*20+x):][:3]
		}
		if !slices.Equal(dst[3*i:3*i+3], want) {
			t.Errorf("pixel %d: %v, want %v", i, dst[3*i:3*i+3], want)
		}
	}
}
