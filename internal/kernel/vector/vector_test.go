package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// specials are the values that most often break a kernel.
var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, kerneltest.Inf, -kerneltest.Inf, kerneltest.NaN,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 1e-39, -1e-40,
	math.MaxFloat32, -math.MaxFloat32, 88.72283, 88.7229, -87.4, -103.9, -104.1, 1e30, -1e30, 14.4, -14.6,
}

const guard = 12345

// vectorSlice returns a slice of n random values (special ones now and then, if
// asked) that begins at any float of a bigger one, and a check that nothing
// around it was written.
func vectorSlice(r *rand.Rand, n int, special bool) (x []float32, intact func() bool) {
	before := r.IntN(20)
	all := make([]float32, before+n+20)
	for i := range all {
		all[i] = guard
	}
	x = all[before : before+n : before+n]
	for i := range x {
		x[i] = float32(r.NormFloat64() * 3)
		if special && r.IntN(4) == 0 {
			x[i] = specials[r.IntN(len(specials))]
		}
	}
	return x, func() bool {
		for i, v := range all {
			if (i < before || i >= before+n) && v != guard {
				return false
			}
		}
		return true
	}
}

// close32 reports whether got is near want: within relative of its size plus
// absolute; NaN and infinities must be the same.
func close32(got, want float32, relative, absolute float64) bool {
	g, w := float64(got), float64(want)
	if math.IsNaN(w) || math.IsInf(w, 0) {
		return math.IsNaN(g) && math.IsNaN(w) || g == w
	}
	return math.Abs(g-w) <= relative*math.Abs(w)+absolute
}

func TestVectorAgainstPlain(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, k := range vectorKernels {
			t.Run(k.name, func(t *testing.T) { compareWithPlain(t, k) })
		}
	})
}

func compareWithPlain(t *testing.T, k vectorKernel) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 201 {
		got, want := make([][]float32, k.slices), make([][]float32, k.slices)
		intact := make([]func() bool, k.slices)
		for i := range got {
			got[i], intact[i] = vectorSlice(r, n, k.special)
			want[i] = append([]float32{}, got[i]...)
		}
		scalars, wantScalars := k.run(got), k.plain(want)
		got, want = append(got, scalars), append(want, wantScalars)
		for i := range want {
			for j, w := range want[i] {
				if !close32(got[i][j], w, k.relative, k.absolute) {
					t.Fatalf("length %d, slice %d, element %d: got %v, want %v", n, i, j, got[i][j], w)
				}
			}
		}
		for i, ok := range intact {
			if !ok() {
				t.Fatalf("length %d: wrote outside slice %d", n, i)
			}
		}
	}
}

// The same element gives the same bits wherever it stands in a slice, so that
// results do not depend on how work is split.
func TestVectorIsIndependentOfPosition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x, _ := vectorSlice(r, 100, false)
	kerneltest.EachLevel(t, func(t *testing.T) {
		whole, part := make([]float32, len(x)), make([]float32, len(x))
		for _, f := range []func(dst, x []float32){Exp, GELU, func(dst, x []float32) { GELUGrad(dst, x, x) }} {
			f(whole, x)
			for at := range x {
				f(part[at:], x[at:])
				for i := at; i < len(x); i++ {
					if math.Float32bits(part[i]) != math.Float32bits(whole[i]) {
						t.Fatalf("from %d on, element %d: got %v, want %v", at, i, part[i], whole[i])
					}
				}
			}
		}
	})
}

// Kernels that treat elements alone give the same bits with AVX2 and AVX-512.
func TestVectorLevelsAgree(t *testing.T) {
	defer cpu.SetLevel(cpu.Level())
	if !cpu.HasAVX512 {
		t.Skip("avx512 is not available")
	}
	for _, k := range vectorKernels {
		switch k.name {
		case "Exp", "SoftmaxDiff", "SoftmaxDiff2", "GELU", "GELUGrad", "Axpy", "MulAdd", "Axpby", "Acos", "AcosGrad", "EMA", "AdamW", "AdamWEMA",
			"MinPlus", "PathCos", "PathCosSlope", "GRU", "GRUGrad":
		default:
			continue
		}
		r := rand.New(rand.NewPCG(15, 16))
		for n := range 100 {
			narrow, wide := make([][]float32, k.slices), make([][]float32, k.slices)
			for i := range wide {
				wide[i], _ = vectorSlice(r, n, k.special)
				narrow[i] = append([]float32{}, wide[i]...)
			}
			cpu.SetLevel(cpu.AVX2)
			k.run(narrow)
			cpu.SetLevel(cpu.AVX512)
			k.run(wide)
			for i := range wide {
				for j, w := range wide[i] {
					if !close32(narrow[i][j], w, 0, 0) {
						t.Fatalf("%s, length %d, slice %d, element %d: %v with AVX2, %v with AVX-512", k.name, n, i, j, narrow[i][j], w)
					}
				}
			}
		}
	}
}

func TestDropout(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for n := range 201 {
			x, _ := vectorSlice(r, n, true)
			dst, intact := vectorSlice(r, n, false)
			bits := make([]int32, (n+31)/32)
			for i := range bits {
				bits[i] = int32(r.Uint32())
			}
			want := make([]float32, n)
			plainDropout(want, x, bits, 1.25)
			Dropout(dst, x, bits, 1.25)
			for i := range want {
				if !close32(dst[i], want[i], 0, 0) {
					t.Fatalf("length %d, element %d: got %v, want %v", n, i, dst[i], want[i])
				}
			}
			if !intact() {
				t.Fatalf("length %d: wrote outside", n)
			}
			y, _ := vectorSlice(r, n, true)
			for i := range want {
				want[i] = y[i] + want[i]
			}
			plain := make([]float32, n)
			plainDropoutAdd(plain, y, x, bits, 1.25)
			DropoutAdd(dst, y, x, bits, 1.25)
			if i, ok := same(dst, want); !ok {
				t.Fatalf("DropoutAdd, length %d, element %d: got %v, want %v", n, i, dst[i], want[i])
			}
			if i, ok := same(plain, want); !ok || !intact() {
				t.Fatalf("plain DropoutAdd, length %d, element %d: got %v, want %v", n, i, plain[i], want[i])
			}
		}
	})
}

func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for range 100 {
			rows, n := r.IntN(200), 1+r.IntN(300)
			x, _ := vectorSlice(r, rows*n, false)
			bias, _ := vectorSlice(r, n, false)
			dst, intact := vectorSlice(r, n, false)
			want := make([]float64, n)
			for j := range want {
				want[j] = float64(dst[j])
				for i := range rows {
					want[j] += float64(x[i*n+j])
				}
			}
			SumRows(dst, x)
			for j := range want {
				if !close32(dst[j], float32(want[j]), 1e-6, 1e-4) {
					t.Fatalf("SumRows, %d x %d, column %d: got %v, want %v", rows, n, j, dst[j], want[j])
				}
			}
			if !intact() {
				t.Fatalf("SumRows, %d x %d: wrote outside", rows, n)
			}
			sum := append([]float32{}, x...)
			AddRows(sum, bias)
			for i := range sum {
				if sum[i] != x[i]+bias[i%n] {
					t.Fatalf("AddRows, %d x %d, element %d: got %v, want %v", rows, n, i, sum[i], x[i]+bias[i%n])
				}
			}
		}
	})
}

func TestSoftmax(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		// exp(0..2)/sum and log sum exp, by hand: e^0 + e^1 + e^2 = 11.107338.
		dst := make([]float32, 3)
		for _, shift := range []float32{0, 1000, -1000} {
			lse := Softmax(dst, []float32{shift, shift + 1, shift + 2})
			for i, want := range []float32{0.09003057, 0.24472847, 0.66524096} {
				if !close32(dst[i], want, 1e-6, 0) {
					t.Errorf("shift %v, element %d: got %v, want %v", shift, i, dst[i], want)
				}
			}
			if !close32(lse, shift+2.4076059, 1e-6, 0) || lse != LogSumExp([]float32{shift, shift + 1, shift + 2}) {
				t.Errorf("shift %v: log sum exp is %v", shift, lse)
			}
		}
		if lse := LogSumExp([]float32{-kerneltest.Inf, -kerneltest.Inf}); lse != -kerneltest.Inf {
			t.Errorf("LogSumExp of -Inf: got %v", lse)
		}
		if lse := LogSumExp(nil); lse != -kerneltest.Inf {
			t.Errorf("LogSumExp of nothing: got %v", lse)
		}
		Softmax(dst, []float32{-kerneltest.Inf, 0, -kerneltest.Inf})
		if dst[0] != 0 || dst[1] != 1 || dst[2] != 0 {
			t.Errorf("Softmax with masked entries: got %v", dst)
		}
	})
}

func TestLayerNormOfConstantRow(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		x, dst := make([]float32, 100), make([]float32, 100)
		one, zero := make([]float32, 100), make([]float32, 100)
		Fill(x, 1000.1)
		Fill(one, 1)
		mean, rstd := LayerNorm(dst, x, one, zero, 1e-12)
		if mean != 1000.1 || !close32(rstd, 1e6, 1e-6, 0) || dst[0] != 0 || dst[99] != 0 {
			t.Errorf("got mean %v, rstd %v, %v", mean, rstd, dst[0])
		}
	})
}

// Rows as wide as models have, with a mean that is large beside their spread,
// against float64 throughout.
func TestLayerNormAccuracy(t *testing.T) {
	const n, eps = 4096, 1e-5
	r := rand.New(rand.NewPCG(17, 18))
	s := make([][]float32, 7)
	for i := range s {
		s[i] = make([]float32, n)
		for j := range s[i] {
			s[i][j] = float32(r.NormFloat64())
		}
	}
	x, gamma, beta, dy, dx, dgamma, dbeta := s[0], s[1], s[2], s[3], s[4], s[5], s[6]
	for i := range x {
		x[i] = 5 + 0.5*x[i]
	}
	var mu, q, a, b float64
	for _, v := range x {
		mu += float64(v) / n
	}
	for _, v := range x {
		q += (float64(v) - mu) * (float64(v) - mu) / n
	}
	rs := 1 / math.Sqrt(q+eps)
	hat := func(i int) float64 { return (float64(x[i]) - mu) * rs }
	for i := range x {
		g := float64(dy[i]) * float64(gamma[i])
		a += g / n
		b += g * hat(i) / n
	}
	kerneltest.EachLevel(t, func(t *testing.T) {
		clear(dgamma)
		clear(dbeta)
		dst := make([]float32, n)
		mean, rstd := LayerNorm(dst, x, gamma, beta, eps)
		LayerNormGrad(dx, dgamma, dbeta, x, gamma, dy, mean, rstd)
		if !close32(mean, float32(mu), 1e-7, 0) || !close32(rstd, float32(rs), 2e-7, 0) {
			t.Errorf("got mean %v, rstd %v, want %v, %v", mean, rstd, mu, rs)
		}
		for i := range x {
			g, h := float64(gamma[i]), hat(i)
			for _, c := range []struct {
				name      string
				got, want float64
			}{
				{"dst", float64(dst[i]), h*g + float64(beta[i])},
				{"dx", float64(dx[i]), rs * (float64(dy[i])*g - a - h*b)},
				{"dgamma", float64(dgamma[i]), float64(dy[i]) * h},
				{"dbeta", float64(dbeta[i]), float64(dy[i])},
			} {
				if !(math.Abs(c.got-c.want) <= 4e-6*(math.Abs(c.want)+1)) {
					t.Fatalf("%s[%d]: got %v, want %v", c.name, i, c.got, c.want)
				}
			}
		}
	})
}

// Rows that a single pass of deviations in float32 would get wrong: far from their
// guessed mean, near the ends of the range, or almost constant.
func TestLayerNormHardRows(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	for _, n := range []int{1, 2, 5, 63, 64, 65, 768, 4096, 4097, 9000} {
		normal := func(mean, std float64) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(mean + std*r.NormFloat64())
			}
			return x
		}
		rows := map[string][]float32{
			"normal": normal(0, 1), "far mean": normal(1e4, 1), "huge": normal(0, 1e25), "tiny": normal(0, 1e-18),
			"almost constant": normal(1000, 1e-4),
		}
		outliers, first := normal(0, 1), normal(0, 1)
		for _, i := range []int{0, n / 4, n / 2, 3 * n / 4} {
			outliers[i] = 3e4
		}
		first[0] = -1e6
		rows["outliers at the guess"], rows["first is an outlier"] = outliers, first
		one, zero, dst := make([]float32, n), make([]float32, n), make([]float32, n)
		Fill(one, 1)
		for name, x := range rows {
			var mu, q float64
			for _, v := range x {
				mu += float64(v) / float64(n)
			}
			for _, v := range x {
				q += (float64(v) - mu) * (float64(v) - mu) / float64(n)
			}
			const eps = 1e-37
			kerneltest.EachLevel(t, func(t *testing.T) {
				mean, rstd := LayerNorm(dst, x, one, zero, eps)
				if !(math.Abs(float64(mean)-mu) <= 1e-6*math.Sqrt(q)+0x1p-24*math.Abs(mu)) {
					t.Errorf("%s of %d: mean %v, want %v", name, n, mean, mu)
				}
				if want := 1 / math.Sqrt(q+eps); n > 1 && !(math.Abs(float64(rstd)-want) <= 1e-6*want) {
					t.Errorf("%s of %d: rstd %v, want %v", name, n, rstd, want)
				}
			})
		}
	}
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, bad := range []float32{kerneltest.NaN, kerneltest.Inf} {
			x, dst, one := make([]float32, 70), make([]float32, 70), make([]float32, 70)
			x[69] = bad
			if _, rstd := LayerNorm(dst, x, one, one, 1e-5); rstd == rstd {
				t.Errorf("a row with %v: got rstd %v, want NaN", bad, rstd)
			}
		}
	})
}

func TestVectorAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	s := make([][]float32, 6)
	for i := range s {
		s[i], _ = vectorSlice(r, 77, false)
	}
	bits := make([]int32, 3)
	kerneltest.EachLevel(t, func(t *testing.T) {
		if a := allocs.PerRun(10, func() {
			Softmax(s[0], s[1])
			GELUGrad(s[0], s[1], s[2])
			LayerNorm(s[0], s[1], s[2], s[3], 1e-5)
			LayerNormGrad(s[0], s[1], s[2], s[3], s[4], s[5], 0, 1)
			LayerNormGradAdd(s[0], s[1], s[2], s[3], s[4], s[5], s[0], 0, 1)
			AdamW(s[0], s[1], s[2], s[3], testAdamW)
			AdamWEMA(s[0], s[1], s[2], s[3], s[4], testAdamW, 0.1)
			BiasGELU(s[0], s[1], s[2][:7])
			Acos(s[0], s[1], 1)
			AcosGrad(s[0], s[1], s[2], 1)
			Axpby(s[0], 1, s[1], 2, s[2])
			SumExpMax(s[0], 1)
			SumExpDotMax(s[0], s[1], 1)
			DropoutAdd(s[0], s[1], s[2], bits, 2)
			SoftmaxDiff2(s[0], s[1], s[2], 1, 1, 1, 1)
			SoftmaxGradRow(s[0], s[1], s[2])
			DropoutBits(bits, 1, 2, 0.9)
			Dropout(s[0], s[1], bits, 2)
			SumRows(s[0][:7], s[1])
		}); a != 0 {
			t.Errorf("%v allocations", a)
		}
	})
}

func TestVectorShortSlicePanics(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		// Capacity is not length.
		long, short := make([]float32, 40), make([]float32, 40)[:39]
		for name, f := range map[string]func(){
			"Add":     func() { Add(long, long, short) },
			"Exp":     func() { Exp(long, short) },
			"Dot":     func() { Dot(long, short) },
			"AdamW":   func() { AdamW(long, long, short, long, testAdamW) },
			"Dropout": func() { Dropout(long, long, make([]int32, 1), 1) },
			"SumRows": func() { SumRows(long, short) },

			"DropoutAdd words":   func() { DropoutAdd(long, long, long, make([]int32, 1), 1) },
			"DropoutAdd":         func() { DropoutAdd(long, long, short, make([]int32, 2), 1) },
			"BiasGELU":           func() { BiasGELU(long, short, long[:8]) },
			"BiasGELU rows":      func() { BiasGELU(short, long, long[:8]) },
			"Acos":               func() { Acos(long, short, 1) },
			"AcosGrad":           func() { AcosGrad(long, long, short, 1) },
			"Axpby":              func() { Axpby(long, 1, long, 1, short) },
			"SumExpDotMax":       func() { SumExpDotMax(long, short, 1) },
			"AdamWEMA":           func() { AdamWEMA(long, long, long, long, short, testAdamW, 1) },
			"LayerNormGradAdd":   func() { LayerNormGradAdd(long, long, long, long, long, long, short, 0, 1) },
			"LayerNorm, no beta": func() { LayerNorm(long, long, long, short, 1) },
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
	})
}
