package pixel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestJitterAgreesWithPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(21, 22))
		for _, n := range sizes(r) {
			for _, factor := range []float32{0, 0.6, 1, 1.4, float32(r.Float64() * 2)} {
				pix := noise(r, 3*n)
				base := float32(r.IntN(256))
				for name, f := range map[string][2]func(pix []uint8){
					"shade":    {func(p []uint8) { Shade(p, base, factor) }, func(p []uint8) { shadePlain(p, base, factor) }},
					"saturate": {func(p []uint8) { Saturate(p, factor) }, func(p []uint8) { saturatePlain(p, factor) }},
				} {
					got, intact := guarded(3 * n)
					copy(got, pix)
					want := slices.Clone(pix)
					f[0](got)
					f[1](want)
					if !slices.Equal(got, want) || !intact() {
						t.Fatalf("%s of %d pixels, factor %v: differs, or wrote outside", name, n, factor)
					}
				}
				if got, want := LumaSum(pix), lumaSumPlain(pix); got != want {
					t.Fatalf("brightness of %d pixels: %d, want %d", n, got, want)
				}
			}
		}
	})
}

// Sums beyond 32 bits must not wrap.
func TestLumaSumOfManyPixels(t *testing.T) {
	if testing.Short() {
		t.Skip("60 MB")
	}
	const n = 20_000_003
	pix := make([]uint8, 3*n)
	for i := range pix {
		pix[i] = 255
	}
	levels(t, func(t *testing.T) {
		if got := LumaSum(pix); got != 255*n {
			t.Errorf("%d, want %d", got, 255*n)
		}
	})
}

func TestBoxAgreesWithPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(23, 24))
		for _, n := range sizes(r) {
			for range 3 {
				near := uint32(1<<24/5 + r.IntN(1<<24*2/15)) // of 5 taps, between even and without far
				far := (1<<24 - 3*near) / 2
				var in [5][]uint8
				for i := range in {
					in[i] = noise(r, n)
				}
				got, intact := guarded(n)
				want := make([]uint8, n)
				Box5(got, in[0], in[1], in[2], in[3], in[4], near, far)
				box5Plain(want, in[0], in[1], in[2], in[3], in[4], near, far)
				if !slices.Equal(got, want) || !intact() {
					t.Fatalf("5 taps, %d bytes: differs, or wrote outside", n)
				}
				near *= 3
				Box3(got, in[0], in[1], in[2], near, (1<<24-near)/2)
				box3Plain(want, in[0], in[1], in[2], near, (1<<24-near)/2)
				if !slices.Equal(got, want) || !intact() {
					t.Fatalf("3 taps, %d bytes: differs, or wrote outside", n)
				}
			}
		}
	})
}

func BenchmarkJitter(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	x := noise(r, 3*256)
	var in [5][]uint8
	for i := range in {
		in[i] = noise(r, len(x))
	}
	for name, f := range map[string]func(){
		"shade":    func() { Shade(x, 100, 1.1) },
		"saturate": func() { Saturate(x, 1.1) },
		"luma":     func() { LumaSum(x) },
		"box3":     func() { Box3(x, in[0], in[1], in[2], 1<<23, 1<<22) },
		"box5":     func() { Box5(x, in[0], in[1], in[2], in[3], in[4], 1<<22, 1<<21) },
	} {
		b.Run(name, func(b *testing.B) { benchLevels(b, len(x), func() func() { return f }) })
	}
}
