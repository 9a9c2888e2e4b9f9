package vector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

func TestToBF16Values(t *testing.T) {
	nan := func(bits uint32) float32 { return math.Float32frombits(bits) }
	tests := []struct {
		x    float32
		want uint16
	}{
		{0, 0}, {float32(math.Copysign(0, -1)), 0x8000}, {1, 0x3f80}, {-2.5, 0xc020},
		// A bfloat16 has 8 bits of precision: 1 + 2^-7 is the value after 1.
		{1 + 0x1p-8, 0x3f80},           // halfway: to the even one below
		{1 + 0x1p-8 + 0x1p-20, 0x3f81}, // just above halfway
		{1 + 3*0x1p-8, 0x3f82},         // halfway: to the even one above
		{1 + 3*0x1p-8 - 0x1p-20, 0x3f81},
		{math.MaxFloat32, 0x7f80}, {-math.MaxFloat32, 0xff80}, // beyond the range
		{0x1.fep127, 0x7f7f}, // the largest
		{float32(math.Inf(1)), 0x7f80}, {float32(math.Inf(-1)), 0xff80},
		{0x1p-149, 0}, {0x1p-133, 1}, {-0x1p-133, 0x8001}, {0x1p-126, 0x80}, // denormals
		{nan(0x7fc00000), 0x7fc0}, {nan(0xffc12345), 0xffc1}, {nan(0x7f800001), 0x7fc0}, {nan(0x7fffffff), 0x7fff},
	}
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, tt := range tests {
			for n := 1; n < 40; n += 19 { // all parts of the loops
				x, h := make([]float32, n), make([]uint16, n)
				for i := range x {
					x[i] = tt.x
				}
				ToBF16(h, x)
				for i := range h {
					if h[i] != tt.want {
						t.Errorf("ToBF16(%v = %08x)[%d] = %04x, want %04x", tt.x, math.Float32bits(tt.x), i, h[i], tt.want)
					}
				}
			}
		}
	})
}

// Every bfloat16 survives the way to float32 and back; a signalling NaN is quieted.
func TestBF16RoundTrip(t *testing.T) {
	half, back, wide := make([]uint16, 1<<16), make([]uint16, 1<<16), make([]float32, 1<<16)
	for i := range half {
		half[i] = uint16(i)
	}
	kerneltest.EachLevel(t, func(t *testing.T) {
		FromBF16(wide, half)
		ToBF16(back, wide)
		for i, h := range half {
			if got := math.Float32bits(wide[i]); got != uint32(h)<<16 {
				t.Fatalf("FromBF16(%04x) = %08x", h, got)
			}
			want := h
			if wide[i] != wide[i] {
				want |= 0x40
			}
			if back[i] != want {
				t.Fatalf("%04x became %04x, want %04x", h, back[i], want)
			}
		}
	})
}

// The assembly gives the bits of the plain twin for any bits and any length.
func TestBF16AgainstPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for range 2000 {
			n := r.IntN(100)
			x, got, want := make([]float32, n), make([]uint16, n+1), make([]uint16, n)
			for i := range x {
				x[i] = math.Float32frombits(r.Uint32())
			}
			got[n] = 0x1234
			ToBF16(got[:n], x)
			plainToBF16(want, x)
			if fmt.Sprint(got[:n]) != fmt.Sprint(want) || got[n] != 0x1234 {
				t.Fatalf("ToBF16(%v): got %04x, want %04x", x, got, want)
			}
			round := make([]float32, n)
			RoundBF16(round, x)
			wide := make([]float32, n+1)
			wide[n] = 5
			FromBF16(wide[:n], want)
			for i := range round {
				w := uint32(want[i]) << 16
				if math.Float32bits(round[i]) != w || math.Float32bits(wide[i]) != w || wide[n] != 5 {
					t.Fatalf("element %d of %d: round %v, wide %v, want %08x", i, n, round[i], wide[i], w)
				}
			}
		}
	})
}

func TestBF16ShortSlicePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"ToBF16":   func() { ToBF16(make([]uint16, 9), make([]float32, 8)) },
		"FromBF16": func() { FromBF16(make([]float32, 9), make([]uint16, 8)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// BenchmarkBF16 converts what fits the first-level cache and what does not.
func BenchmarkBF16(b *testing.B) {
	defer cpu.SetLevel("")
	for _, level := range []string{cpu.Plain, cpu.AVX2, cpu.AVX512} {
		cpu.SetLevel(level)
		for _, n := range []int{4 << 10, 8 << 20} {
			x, h := make([]float32, n), make([]uint16, n)
			for _, k := range []struct {
				name string
				run  func()
			}{{"ToBF16", func() { ToBF16(h, x) }}, {"FromBF16", func() { FromBF16(x, h) }}, {"round", func() { RoundBF16(x, x) }}} {
				b.Run(fmt.Sprintf("%s/%s/%d", k.name, level, n), func(b *testing.B) {
					b.SetBytes(int64(6 * n))
					for b.Loop() {
						k.run()
					}
				})
			}
		}
	}
}
