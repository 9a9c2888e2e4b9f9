package vector

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// ulps returns |got - want| in units of the last place of want as a float32.
func ulps(got float32, want float64) float64 {
	if math.IsNaN(want) || math.Abs(want) > math.MaxFloat32 {
		if float32(want) == got || want != want && got != got {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e, -125)-24)
}

// sweep calls f on blocks of float32 values spread over all bit patterns.
func sweep(step uint64, f func(x []float32)) {
	x := make([]float32, 0, 4096)
	for b := uint64(0); b < 1<<32; b += step {
		x = append(x, math.Float32frombits(uint32(b)))
		if len(x) == cap(x) {
			f(x)
			x = x[:0]
		}
	}
	f(x)
}

// sweepStep is prime, so that the low bits vary.
const sweepStep = 4093

func TestExpAccuracy(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		dst := make([]float32, 4096)
		worst, worstTiny := 0.0, 0.0
		var at float32
		sweep(sweepStep, func(x []float32) {
			Exp(dst[:len(x)], x)
			for i, v := range x {
				want := math.Exp(float64(v))
				u := ulps(dst[i], want)
				if want < 0x1p-126 {
					worstTiny = max(worstTiny, u)
				} else if !(u <= worst) {
					worst, at = u, v
				}
			}
		})
		t.Logf("largest error %.3f ulp at %v, %.3f ulp for subnormal results", worst, at, worstTiny)
		if !(worst <= 1) || !(worstTiny <= 1) {
			t.Errorf("largest error %.3f ulp at %v, %.3f ulp for subnormal results", worst, at, worstTiny)
		}
		// 0x1.62e42ep6 is the largest x whose exp is finite; exp(-103.97208) is the
		// middle between 0 and the smallest subnormal.
		for _, c := range [][2]float32{
			{0, 1}, {kerneltest.Inf, kerneltest.Inf}, {-kerneltest.Inf, 0}, {kerneltest.NaN, kerneltest.NaN}, {0x1.62e42ep6, 0x1.ffff08p127}, {0x1.62e43p6, kerneltest.Inf},
			{-103.9, math.SmallestNonzeroFloat32}, {-104, 0}, {math.MaxFloat32, kerneltest.Inf}, {-math.MaxFloat32, 0},
		} {
			Exp(dst[:1], []float32{c[0]})
			if !close32(dst[0], c[1], 1.2e-7, 0) {
				t.Errorf("exp(%v): got %v, want %v", c[0], dst[0], c[1])
			}
		}
	})
}

// The oracle is written with erf, unlike the plain twin.
func TestGELUAccuracy(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		y, d, one := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096)
		Fill(one, 1)
		var worst, worstGrad, worstTail float64
		sweep(sweepStep, func(x []float32) {
			n := len(x)
			GELU(y[:n], x)
			GELUGrad(d[:n], x, one[:n])
			for i, v := range x {
				w := float64(v)
				if math.IsNaN(w) || math.IsInf(w, 0) {
					continue
				}
				// The plain gradient keeps its last subnormals down to -14.6.
				if w > 6 && y[i] != v || w < -14.6 && (y[i] != 0 || d[i] != 0) || w > 14.5 && d[i] != 1 {
					t.Fatalf("x = %v: got %v and gradient %v, want the limit", v, y[i], d[i])
				}
				want := 0.5 * w * (1 + math.Erf(w/math.Sqrt2))
				worst = max(worst, math.Abs(float64(y[i])-want)/max(math.Abs(w), 1))
				phi := math.Exp(-0.5*w*w) / math.Sqrt(2*math.Pi)
				worstGrad = max(worstGrad, math.Abs(float64(d[i])-(0.5*(1+math.Erf(w/math.Sqrt2))+w*phi)))
				if w < 0 && w > -10 {
					want = 0.5 * w * math.Erfc(-w/math.Sqrt2)
					if want < -1e-30 {
						worstTail = max(worstTail, math.Abs(float64(y[i])/want-1))
					}
				}
			}
		})
		t.Logf("largest error of GELU %.2g of max(|x|, 1), relative for x in (-10, 0) %.2g; of the gradient %.2g", worst, worstTail, worstGrad)
		if !(worst <= 1.2e-7) || !(worstGrad <= 2e-7) || !(worstTail <= 5e-6) {
			t.Errorf("largest error of GELU %.2g of max(|x|, 1), relative for x in (-10, 0) %.2g; of the gradient %.2g", worst, worstTail, worstGrad)
		}
		GELU(y[:3], []float32{kerneltest.Inf, -kerneltest.Inf, kerneltest.NaN})
		GELUGrad(d[:3], []float32{kerneltest.Inf, -kerneltest.Inf, kerneltest.NaN}, one[:3])
		if y[0] != kerneltest.Inf || y[1] != 0 || y[2] == y[2] || d[0] != 1 || d[1] != 0 || d[2] == d[2] {
			t.Errorf("at +Inf, -Inf, NaN: got %v and gradient %v", y[:3], d[:3])
		}
	})
}

func TestAcosAccuracy(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		y, d, one := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096)
		Fill(one, 1)
		var worst, worstGrad float64
		var at float32
		sweep(sweepStep, func(x []float32) {
			for i, v := range x { // where most values of [-1, 1] are not: near its ends
				if i%2 == 0 && v >= -1 && v <= 1 {
					x[i] = float32(math.Copysign(1-math.Abs(float64(v)), float64(v)))
				}
			}
			n := len(x)
			Acos(y[:n], x, 1)
			AcosGrad(d[:n], x, one[:n], 1)
			for i, v := range x {
				if v != v {
					if y[i] == y[i] || d[i] == d[i] {
						t.Fatalf("NaN: got %v and gradient %v", y[i], d[i])
					}
					continue
				}
				w := math.Max(-1, math.Min(float64(v), 1))
				if u := ulps(y[i], math.Acos(w)); !(u <= worst) {
					worst, at = u, v
				}
				if v > 1 || v < -1 {
					if d[i] != 0 {
						t.Fatalf("x = %v: gradient %v", v, d[i])
					}
					continue
				}
				if g := -1 / math.Sqrt(1-w*w); w > -1 && w < 1 {
					worstGrad = max(worstGrad, ulps(d[i], g))
				}
			}
		})
		t.Logf("largest error %.3f ulp at %v, of the gradient %.3f ulp", worst, at, worstGrad)
		if !(worst <= 2) || !(worstGrad <= 2) {
			t.Errorf("largest error %.3f ulp at %v, of the gradient %.3f ulp", worst, at, worstGrad)
		}
		// acos and its slope at cosines of named angles and beyond the limit.
		in := []float32{0, 1, -1, 0.5, -0.5, 2, -2}
		Acos(y[:7], in, 1)
		near := []float32{math.Pi / 2, 0, math.Pi, math.Pi / 3, 2 * math.Pi / 3, 0, math.Pi}
		for i, want := range near {
			if !close32(y[i], want, 1.2e-7, 0) {
				t.Errorf("acos(%v): got %v, want %v", in[i], y[i], want)
			}
		}
		Acos(y[:3], []float32{1, -1, AcosLimit}, AcosLimit)
		AcosGrad(d[:4], []float32{1, -1, AcosLimit, -AcosLimit}, one, AcosLimit)
		limit := float64(float32(AcosLimit))
		if want := float32(math.Acos(limit)); !close32(y[0], want, 2e-7, 0) || y[2] != y[0] || !close32(y[1], math.Pi-want, 2e-7, 0) {
			t.Errorf("limited: got %v", y[:3])
		}
		if want := float32(-1 / math.Sqrt(1-limit*limit)); d[0] != 0 || d[1] != 0 || !close32(d[2], want, 2e-7, 0) || d[2] != d[3] {
			t.Errorf("limited gradient: got %v, want 0, 0, %v", d[:4], want)
		}
	})
}
