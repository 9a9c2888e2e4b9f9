package pixel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// block is a block of coefficients as photos have them, or, hostile, of any numbers.
func block(r *rand.Rand, hostile bool) (c, steps Block) {
	for i := range c {
		steps[i] = int16(1 + r.IntN(30))
		if r.IntN(3) == 0 {
			c[i] = int16(r.IntN(64) - 32)
		}
		if hostile {
			c[i], steps[i] = int16(r.Uint32()), int16(r.Uint32())
		}
	}
	if r.IntN(3) == 0 { // what takes a way of its own: a row alone
		clear(c[8:])
	}
	return c, steps
}

// The transform is the inverse DCT (T.81, section A.3.3) in fixed point: within one of it in float64.
func TestInverseDCT(t *testing.T) {
	defer setLevel("")
	for _, level := range []string{"plain", "avx2"} {
		setLevel(level)
		r := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			c, steps := block(r, false)
			var want [64]float64
			for y := range 8 {
				for x := range 8 {
					sum := 0.0
					for v := range 8 {
						for u := range 8 {
							k := float64(c[8*v+u] * steps[8*v+u])
							if u == 0 {
								k /= math.Sqrt2
							}
							if v == 0 {
								k /= math.Sqrt2
							}
							sum += k / 4 * math.Cos(float64((2*x+1)*u)*math.Pi/16) * math.Cos(float64((2*y+1)*v)*math.Pi/16)
						}
					}
					want[8*y+x] = min(max(sum+128, 0), 255)
				}
			}
			got := make([]uint8, 7*11+8)
			InverseDCT(got, 11, &c, &steps)
			for y := range 8 {
				for x := range 8 {
					if d := math.Abs(float64(got[11*y+x]) - want[8*y+x]); d > 1 {
						t.Fatalf("%s: row %d, column %d: got %d, want %.2f", level, y, x, got[11*y+x], want[8*y+x])
					}
				}
			}
		}
	}
}

// Vector code gives the bits of plain Go, also where hostile numbers overflow, and writes the block alone.
func TestInverseDCTVectors(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for i := range 500 {
			c, steps := block(r, i%2 == 0)
			d, stride := c, 8+r.IntN(5)
			got, want := bytes.Repeat([]byte{99}, 7*stride+12), bytes.Repeat([]byte{99}, 7*stride+12)
			InverseDCT(got, stride, &c, &steps)
			inverseDCTPlain(want, stride, &d, &steps)
			if !bytes.Equal(got, want) {
				t.Fatalf("block %d: got %v, want %v", i, got, want)
			}
		}
	})
}
