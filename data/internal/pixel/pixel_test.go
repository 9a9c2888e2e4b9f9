package pixel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// levels runs f once for every instruction set that the processor has beyond the
// plain one.
func levels(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer setLevel("")
	for _, level := range []string{"avx2", "avx512"} {
		setLevel(level)
		if !hasAVX2 || level == "avx512" && !hasWide {
			continue
		}
		t.Run(level, f)
	}
}

func TestLevelsOnlyLower(t *testing.T) {
	defer setLevel("")
	setLevel("")
	avx2, wide := hasAVX2, hasWide
	for _, c := range []struct {
		level      string
		avx2, wide bool
	}{{"plain", false, false}, {"avx2", avx2, false}, {"avx512", avx2, wide}, {"unknown", avx2, wide}} {
		setLevel(c.level)
		if hasAVX2 != c.avx2 || hasWide != c.wide {
			t.Errorf("%q: avx2 %v and avx512 %v, want %v and %v", c.level, hasAVX2, hasWide, c.avx2, c.wide)
		}
	}
}

// noise returns n random bytes; every fourth call gives only 0 and 255, which
// drive the fixed point to its ends.
func noise(r *rand.Rand, n int) []uint8 {
	b := make([]uint8, n)
	hard := r.IntN(4) == 0
	for i := range b {
		b[i] = uint8(r.Uint32())
		if hard {
			b[i] = -(b[i] & 1)
		}
	}
	return b
}

// sizes are row lengths around the vector lengths, and random ones.
func sizes(r *rand.Rand) []int {
	s := []int{0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 127, 129, 256}
	for range 20 {
		s = append(s, 1+r.IntN(700))
	}
	return s
}

// guarded returns a slice of n bytes within a larger one whose other bytes intact
// then tests.
func guarded(n int) (b []uint8, intact func() bool) {
	const margin, fill = 70, 0xa5
	all := make([]uint8, n+2*margin)
	for i := range all {
		all[i] = fill
	}
	return all[margin : margin+n : margin+n], func() bool {
		for i, v := range all {
			if (i < margin || i >= margin+n) && v != fill {
				return false
			}
		}
		return true
	}
}

// bicubic makes the taps of an axis: any weights would do; these have the shape,
// the edges and, scaled up now and then, the overshoot of real ones.
func bicubic(r *rand.Rand, in, out int) *Taps {
	scale := float64(in) / float64(out)
	support := 2 * max(scale, 1)
	t := &Taps{In: in, Out: out, Size: 2*int(math.Ceil(support)) + 1}
	t.First, t.Num = make([]int32, out), make([]int32, out)
	t.Coef = make([]int32, out*t.Size)
	for i := range out {
		centre := (float64(i) + 0.5) * scale
		lo := max(int(centre-support+0.5), 0)
		hi := min(int(centre+support+0.5), in)
		t.First[i], t.Num[i] = int32(lo), int32(hi-lo)
		for x := range hi - lo {
			t.Coef[i*t.Size+x] = int32((r.Float64()*3 - 1) * (1 << CoefBits) / float64(hi-lo))
		}
	}
	return t
}

func TestRowFilterAgreesWithPlain(t *testing.T) {
	shapes := [][2]int{{1, 1}, {1, 300}, {300, 1}, {2, 5}, {5, 6}, {6, 7}, {21, 22}, {22, 21}, {64, 16}, {256, 256}, {128, 256},
		{255, 256}, {257, 256}, {500, 256}, {640, 224}, {1024, 256}, {1500, 256}, {2900, 256}, {4000, 256}, {3000, 16}, {256, 1000}}
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		all := slices.Clone(shapes)
		for range 300 {
			all = append(all, [2]int{1 + r.IntN(600), 1 + r.IntN(300)}, [2]int{100 + r.IntN(3000), 1 + r.IntN(90)})
		}
		compiled, shrinks := 0, 0
		for _, s := range all {
			in, out, rows := s[0], s[1], 1+r.IntN(4)
			taps := bicubic(r, in, out)
			if r.IntN(2) == 0 {
				taps.Mirror()
			}
			var f RowFilter
			f.Set(taps)
			if f.blocks > 0 {
				compiled++
			}
			if f.shrinks {
				shrinks++
			}
			stride := 3*in + r.IntN(5)
			src := noise(r, (rows-1)*stride+3*in)
			got, intact := guarded(rows * 3 * out)
			f.Apply(got, src, rows, stride)
			want := make([]uint8, 3*out)
			for y := range rows {
				filterRowPlain(taps, want, src[y*stride:][:3*in])
				if !slices.Equal(got[3*out*y:3*out*(y+1)], want) {
					t.Fatalf("%d to %d pixels: row %d of %d differs", in, out, y, rows)
				}
			}
			if !intact() {
				t.Fatalf("%d to %d pixels: wrote outside", in, out)
			}
		}
		if compiled < 200 || shrinks < 200 {
			t.Errorf("only %d and %d of the filters took the vector paths", compiled, shrinks)
		}
	})
}

// A photo of the usual sizes must take the vector path at both ends.
func TestRowFilterTakesVectorPath(t *testing.T) {
	levels(t, func(t *testing.T) {
		for _, c := range []struct{ in, out int }{{128, 256}, {256, 256}, {300, 256}, {500, 256}, {640, 224}, {900, 256}, {256, 128}} {
			var f RowFilter
			f.Set(bicubic(rand.New(rand.NewPCG(1, 1)), c.in, c.out))
			if f.blocks == 0 {
				t.Errorf("%d to %d pixels: plain", c.in, c.out)
			}
		}
	})
}

func TestMixRowsAgreesWithPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range sizes(r) {
			for _, taps := range []int{1, 2, 3, 4, 5, 9, 30} {
				stride := n + r.IntN(4)
				src := noise(r, (taps-1)*stride+n)
				k := make([]int32, taps)
				for i := range k {
					k[i] = int32((r.Float64()*3 - 1) * (1 << CoefBits) / float64(taps))
				}
				got, intact := guarded(n)
				want := make([]uint8, n)
				MixRows(got, src, stride, k, nil)
				mixRowsPlain(want, src, stride, k, nil)
				if !slices.Equal(got, want) || !intact() {
					t.Fatalf("%d bytes, %d taps: differs, or wrote outside", n, taps)
				}
			}
		}
	})
}

func TestNormalizeAgreesWithPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	statistics := [][2][3]float32{
		{{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}}, // CLIP
		{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},                              // ImageNet
		{{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
		{{0, 0, 0}, {1, 1, 1}},
	}
	for range 20 {
		var s [2][3]float32
		for c := range 3 {
			s[0][c], s[1][c] = r.Float32(), 0.05+r.Float32()
		}
		statistics = append(statistics, s)
	}
	levels(t, func(t *testing.T) {
		for i, s := range statistics {
			z := NewNormalizer(s[0], s[1])
			if i < 4 && !z.exact {
				t.Errorf("mean %v, std %v: the kernels do not give the quotients", s[0], s[1])
			}
			for _, n := range sizes(r)[:30] {
				src := noise(r, 3*n)
				got := make([]float32, 3*n+8)
				z.Apply(got, src)
				for j := range 3 * n {
					c := j / n
					v := float32(src[3*(j%n)+c]) / 255
					if want := (v - s[0][c]) / s[1][c]; got[j] != want {
						t.Fatalf("%d pixels: value %d is %v, want %v", n, j, got[j], want)
					}
				}
				if !slices.Equal(got[3*n:], make([]float32, 8)) {
					t.Fatalf("%d pixels: wrote outside", n)
				}
			}
		}
	})
}

func TestYCbCrAgreesWithPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range append(sizes(r), 1<<16) {
			y, cb, cr := noise(r, n), noise(r, n), noise(r, n)
			got, intact := guarded(3 * n)
			want := make([]uint8, 3*n)
			YCbCr(got, y, cb, cr)
			yCbCrPlain(want, y, cb, cr)
			if !slices.Equal(got, want) || !intact() {
				t.Fatalf("%d pixels: differs, or wrote outside", n)
			}
		}
	})
}

// Every colour of a byte pair and every fourth brightness.
func TestYCbCrAllColours(t *testing.T) {
	levels(t, func(t *testing.T) {
		y, cb, cr := make([]uint8, 256), make([]uint8, 256), make([]uint8, 256)
		got, want := make([]uint8, 3*256), make([]uint8, 3*256)
		for a := range 65 {
			for b := range 256 {
				for c := range 256 {
					y[c], cb[c], cr[c] = uint8(min(4*a, 255)), uint8(b), uint8(c)
				}
				YCbCr(got, y, cb, cr)
				yCbCrPlain(want, y, cb, cr)
				if !slices.Equal(got, want) {
					t.Fatalf("y %d, cb %d differs", y[0], b)
				}
			}
		}
	})
}

// TestColours: literal colours (ITU-T T.871, 7), rounded.
func TestColours(t *testing.T) {
	for _, c := range []struct{ y, cb, cr, r, g, b uint8 }{
		{100, 128, 128, 100, 100, 100}, {76, 85, 255, 254, 0, 0}, {150, 44, 21, 0, 255, 1}, {29, 255, 107, 0, 0, 254}, {10, 0, 0, 0, 145, 0}, {100, 129, 129, 101, 99, 102},
	} {
		var got [3]uint8
		YCbCr(got[:], []uint8{c.y}, []uint8{c.cb}, []uint8{c.cr})
		if got != [3]uint8{c.r, c.g, c.b} {
			t.Errorf("%v: got %v", c, got)
		}
	}
}

func TestColourRowsAgreeWithPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, n := range sizes(r) {
			near, far := noise(r, n), noise(r, n)
			got, want := make([]uint16, n+8), make([]uint16, n)
			Weigh(got[:n], near, far)
			weighPlain(want, near, far)
			if !slices.Equal(got[:n], want) || !slices.Equal(got[n:], make([]uint16, 8)) {
				t.Fatalf("weigh %d: differs, or wrote outside", n)
			}
			if n == 0 {
				continue
			}
			sums := append(append([]uint16{want[0]}, want...), want[n-1])
			row, intact := guarded(2 * n)
			plain := make([]uint8, 2*n)
			Stretch(row, sums)
			stretchPlain(plain, sums)
			if !slices.Equal(row, plain) || !intact() {
				t.Fatalf("stretch %d: differs, or wrote outside", n)
			}
			row, intact = guarded(2 * n)
			StretchRow(row, near)
			stretchRowPlain(plain, near)
			if !slices.Equal(row, plain) || !intact() {
				t.Fatalf("stretch row %d: differs, or wrote outside", n)
			}
		}
	})
}

func TestSharpenAgreesWithPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		for _, n := range sizes(r) {
			for _, factor := range []float32{0, 0.1, 0.5, 1, 1.36, 1.9, float32(r.Float64() * 2)} {
				up, row, down := noise(r, n), noise(r, n), noise(r, n)
				got, intact := guarded(n)
				want := slices.Clone(row)
				Sharpen(got, up, row, down, factor)
				sharpenPlain(want, up, row, down, factor)
				if !slices.Equal(got, want) || !intact() {
					t.Fatalf("%d bytes, factor %v: differs, or wrote outside", n, factor)
				}
			}
		}
	})
}

// The product that stands for the division by 26 in the kernel of Sharpen.
func TestSharpenDivision(t *testing.T) {
	for sum := range 13*255 + 1 {
		if v := 2*sum + 13; v*10083>>18 != v/26 {
			t.Fatalf("%d", sum)
		}
	}
}

func TestShortSlicesPanic(t *testing.T) {
	taps := bicubic(rand.New(rand.NewPCG(1, 1)), 100, 100)
	var f RowFilter
	f.Set(taps)
	b := make([]uint8, 300)
	for name, call := range map[string]func(){
		"rows in":   func() { f.Apply(make([]uint8, 600), b, 2, 300) },
		"rows out":  func() { f.Apply(b[:299], b, 1, 300) },
		"mix":       func() { MixRows(b[:200], b, 200, []int32{1, 1}, nil) },
		"normalize": func() { NewNormalizer([3]float32{}, [3]float32{1, 1, 1}).Apply(make([]float32, 299), b) },
		"ycbcr":     func() { YCbCr(b, b[:100], b[:99], b) },
		"ycbcr out": func() { YCbCr(b[:299], b[:100], b, b) },
		"weigh":     func() { Weigh(make([]uint16, 100), b[:100], b[:99:99]) },
		"stretch":   func() { Stretch(b[:99], make([]uint16, 52)) },
		"row":       func() { StretchRow(b[:199:199], b[:100]) },
		"box3":      func() { Box3(b, b, b, b[:299:299], 1, 1) },
		"box5":      func() { Box5(b, b, b, b, b[:299:299], b, 1, 1) },
		"sharpen":   func() { Sharpen(b, b, b, b[:299:299], 1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}
