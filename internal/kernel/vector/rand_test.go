package vector

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

func TestDropoutBitsShare(t *testing.T) {
	const words = 1 << 16
	for _, keep := range []float64{1.0 / 65536, 0.01, 0.1, 0.5, 0.9, 0.997} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			dst := make([]int32, words)
			DropoutBits(dst, 42, 0, float32(keep))
			var total float64
			var perBit [32]float64
			// pairs[d] counts ones that are followed by a one d bits or words later.
			var nextBit, nextWord float64
			for i, w := range dst {
				u := uint32(w)
				total += float64(bits.OnesCount32(u))
				for b := range perBit {
					perBit[b] += float64(u >> b & 1)
				}
				nextBit += float64(bits.OnesCount32(u & (u >> 1)))
				nextWord += float64(bits.OnesCount32(u & uint32(dst[(i+1)%words])))
			}
			p := math.Round(keep*65536) / 65536
			check := func(name string, got, n, p float64) {
				t.Helper()
				// Five standard deviations; a fixed key, so it passes always or never.
				if d := math.Abs(got - n*p); d > 5*math.Sqrt(n*p*(1-p))+1 {
					t.Errorf("%s: %v ones of %v, want %v", name, got, n, n*p)
				}
			}
			check("all", total, 32*words, p)
			for b, got := range perBit {
				check(fmt.Sprintf("bit %d", b), got, words, p)
			}
			check("next bit", nextBit, 31*words, p*p)
			check("next word", nextWord, 32*words, p*p)
		})
	}
}

// The first word of SplitMix64 from seed 0, as published with its Java source.
func TestMix64(t *testing.T) {
	if got := mix64(goldenGamma); got != 0xe220a8397b1dcdaf {
		t.Errorf("got %#x", got)
	}
}

func TestDropoutBitsIsAFunctionOfPosition(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		whole := make([]int32, 100)
		DropoutBits(whole, 7, 1000, 0.8)
		for n := range whole {
			part := make([]int32, 100)
			DropoutBits(part[:n], 7, 1000, 0.8)
			DropoutBits(part[n:], 7, 1000+uint64(n), 0.8)
			for i := range whole {
				if part[i] != whole[i] {
					t.Fatalf("split at %d: word %d is %08x, want %08x", n, i, part[i], whole[i])
				}
			}
		}
		// From a loop over the elements in Python: masks of old runs must come again.
		for i, w := range []uint32{0xf87fe6eb, 0xff7fbdff, 0x7397ffbf, 0x9dffbefb} {
			if uint32(whole[i]) != w {
				t.Errorf("word %d: got %#x, want %#x", i, uint32(whole[i]), w)
			}
		}
	})
}

// Each element is kept exactly if its 16 random bits are below the threshold.
func TestDropoutBitsThreshold(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, keep := range []float32{1.0 / 65536, 0.25, 0.5, 0.75, 1 - 1.0/65536} {
			dst := make([]int32, 64)
			DropoutBits(dst, 3, 5, keep)
			for i := range dst {
				var want uint32
				for b := range 32 {
					word := mix64(mix64(3) + ((5+uint64(i))*wordsPerMask+uint64(b/4)+1)*goldenGamma)
					if float32(word>>(16*(b%4))&0xffff) < keep*65536 {
						want |= 1 << b
					}
				}
				if uint32(dst[i]) != want {
					t.Fatalf("keep %v, word %d: got %08x, want %08x", keep, i, uint32(dst[i]), want)
				}
			}
		}
	})
}

func TestDropoutBitsLimits(t *testing.T) {
	dst := make([]int32, 9)
	for _, c := range []struct {
		keep float32
		want int32
	}{{1, -1}, {2, -1}, {kerneltest.Inf, -1}, {0.999999, -1}, {0, 0}, {-1, 0}, {kerneltest.NaN, 0}, {1e-9, 0}} {
		for i := range dst {
			dst[i] = 0x55
		}
		DropoutBits(dst, 1, 2, c.keep)
		for i, w := range dst {
			if w != c.want {
				t.Errorf("keep %v, word %d: got %#x, want %#x", c.keep, i, w, c.want)
			}
		}
	}
}

func TestDropoutBitsKeysDiffer(t *testing.T) {
	a, b := make([]int32, 1000), make([]int32, 1000)
	DropoutBits(a, 1, 0, 0.5)
	DropoutBits(b, 2, 0, 0.5)
	same := 0
	for i := range a {
		same += 32 - bits.OnesCount32(uint32(a[i]^b[i]))
	}
	if !(math.Abs(float64(same)-16000) <= 5*math.Sqrt(8000)) {
		t.Errorf("masks of two keys agree in %d of 32000 bits", same)
	}
}

func BenchmarkDropoutBits(b *testing.B) {
	defer cpu.SetLevel(cpu.Level())
	dst := make([]int32, 1024)
	for _, level := range []string{cpu.Plain, cpu.AVX2, cpu.AVX512} {
		cpu.SetLevel(level)
		if cpu.Level() != level {
			continue
		}
		b.Run(level, func(b *testing.B) {
			for b.Loop() {
				DropoutBits(dst, 1, 2, 0.9)
			}
			b.ReportMetric(32*1024*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
		})
	}
}

func BenchmarkDropout(b *testing.B) {
	defer cpu.SetLevel(cpu.Level())
	x, mask := make([]float32, 1024), make([]int32, 32)
	for _, level := range []string{cpu.Plain, cpu.AVX2, cpu.AVX512} {
		cpu.SetLevel(level)
		if cpu.Level() != level {
			continue
		}
		b.Run(level, func(b *testing.B) {
			for b.Loop() {
				Dropout(x, x, mask, 1.1)
			}
			b.ReportMetric(1024*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
		})
	}
}
