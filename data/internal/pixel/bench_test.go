package pixel

import (
	"math/rand/v2"
	"testing"
)

// Benchmarks of every kernel and its plain twin, on rows of the width that a
// picture of 256 pixels has; MB/s counts the bytes read and written.
//
//	go test ./data/internal/pixel -run none -bench .
func benchLevels(b *testing.B, bytes int, setup func() func()) {
	defer setLevel("")
	for _, level := range []string{"plain", "avx2", "avx512"} {
		setLevel(level)
		if level == "avx2" && !hasAVX2 || level == "avx512" && !hasWide {
			continue
		}
		b.Run(level, func(b *testing.B) {
			f := setup()
			b.SetBytes(int64(bytes))
			for b.Loop() {
				f()
			}
		})
	}
}

func benchRows(b *testing.B, in, out int) {
	const rows = 64
	r := rand.New(rand.NewPCG(1, 2))
	src, dst := noise(r, 3*in*rows), make([]uint8, 3*out*rows)
	taps := bicubic(r, in, out)
	benchLevels(b, len(src)+len(dst), func() func() {
		var f RowFilter
		f.Set(taps)
		return func() { f.Apply(dst, src, rows, 3*in) }
	})
}

func BenchmarkRowFilter200to256(b *testing.B)  { benchRows(b, 200, 256) }
func BenchmarkRowFilter500to256(b *testing.B)  { benchRows(b, 500, 256) }
func BenchmarkRowFilter1500to256(b *testing.B) { benchRows(b, 1500, 256) }

// The program of a random crop is made for every sample.
func BenchmarkRowFilterSet(b *testing.B) {
	taps := bicubic(rand.New(rand.NewPCG(1, 2)), 200, 256)
	benchLevels(b, 0, func() func() {
		var f RowFilter
		return func() { f.Set(taps) }
	})
}

func BenchmarkMixRows(b *testing.B) {
	const n = 768
	src, dst := noise(rand.New(rand.NewPCG(1, 2)), 4*n), make([]uint8, n)
	benchLevels(b, 5*n, func() func() {
		return func() { MixRows(dst, src, n, []int32{-1 << 17, 1 << 21, 1 << 21, -1 << 17}, nil) }
	})
}

func BenchmarkNormalize(b *testing.B) {
	src, dst := noise(rand.New(rand.NewPCG(1, 2)), 3*1024), make([]float32, 3*1024)
	benchLevels(b, 5*len(src), func() func() {
		z := NewNormalizer([3]float32{0.5, 0.4, 0.3}, [3]float32{0.2, 0.3, 0.4})
		return func() { z.Apply(dst, src) }
	})
}

func BenchmarkYCbCr(b *testing.B) {
	const n = 256
	r := rand.New(rand.NewPCG(1, 2))
	y, cb, cr, dst := noise(r, n), noise(r, n), noise(r, n), make([]uint8, 3*n)
	benchLevels(b, 6*n, func() func() { return func() { YCbCr(dst, y, cb, cr) } })
}

func BenchmarkColourRow(b *testing.B) {
	const n = 128
	r := rand.New(rand.NewPCG(1, 2))
	near, far, sums, dst := noise(r, n), noise(r, n), make([]uint16, n+2), make([]uint8, 2*n)
	benchLevels(b, 4*n, func() func() {
		return func() {
			Weigh(sums[1:n+1], near, far)
			Stretch(dst, sums)
		}
	})
}

func BenchmarkSharpen(b *testing.B) {
	const n = 768
	r := rand.New(rand.NewPCG(1, 2))
	up, row, down, dst := noise(r, n), noise(r, n), noise(r, n), make([]uint8, n)
	benchLevels(b, 4*n, func() func() { return func() { Sharpen(dst, up, row, down, 1.36) } })
}

func BenchmarkWarp(b *testing.B) {
	const n = 256
	src, dst := noise(rand.New(rand.NewPCG(1, 2)), 3*n*n), make([]uint8, 3*n)
	xs, ys := make([]int32, n), make([]int32, n)
	for i := range xs {
		xs[i], ys[i] = int32(i*1000), int32(i*200)
	}
	benchLevels(b, 6*n, func() func() {
		return func() { Warp(dst, src, n, n, xs, ys, 3000, 9000, 128) }
	})
}
