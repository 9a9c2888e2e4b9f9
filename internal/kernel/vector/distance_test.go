package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
)

// TestLocalDistances compares distances and the gradient with their definitions in float64,
// for numbers of spheres and channels about the sizes of blocks.
func TestLocalDistances(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 1))
	const limit = float64(float32(AcosLimit))
	for _, c := range []struct{ spheres, width int }{{1, 1}, {1, 7}, {2, 5}, {3, 16}, {31, 4}, {32, 3}, {33, 5}, {70, 4}, {1, 63}, {1, 64}, {1, 200}} {
		n := c.spheres * c.width
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		var sq, angles float64
		slopes := make([]float64, c.spheres)
		for k := range c.spheres {
			a, b := x[k*c.width:(k+1)*c.width], y[k*c.width:(k+1)*c.width]
			Scale(a, float32(1/math.Sqrt(SumSq(a))), a)
			Scale(b, float32(1/math.Sqrt(SumSq(b))), b)
			var dot float64
			for i := range a {
				dot += float64(a[i]) * float64(b[i])
				sq += (float64(a[i]) - float64(b[i])) * (float64(a[i]) - float64(b[i]))
			}
			limited := math.Abs(dot) > limit
			dot = max(-limit, min(dot, limit))
			angles += math.Acos(dot) * math.Acos(dot)
			if !limited {
				slopes[k] = -math.Acos(dot) / math.Sqrt(1-dot*dot)
			}
		}
		if got := SquaredDistance(x, y); !(math.Abs(got-sq) <= 1e-6*sq) {
			t.Errorf("%+v: squared distance %v, want %v", c, got, sq)
		}
		d := ProductAngle(x, y, c.spheres)
		if want := math.Sqrt(angles); !(math.Abs(float64(d)-want) <= 1e-5*want) {
			t.Errorf("%+v: angle %v, want %v", c, d, want)
		}
		dx := make([]float32, n)
		Fill(dx, 10) // it adds
		ProductAngleGrad(dx, 3, x, y, c.spheres, d)
		for i, v := range dx {
			k := i / c.width
			if want := 10 + 3*slopes[k]/math.Sqrt(angles)*float64(y[i]); !(math.Abs(float64(v)-want) <= 1e-4*(1+math.Abs(slopes[k]))) {
				t.Fatalf("%+v: gradient %d is %v, want %v", c, i, v, want)
			}
		}
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			x[n-1] = bad
			if d := ProductAngle(x, y, c.spheres); d == d {
				t.Errorf("%+v: angle %v of a row with %v", c, d, bad)
			}
			if d := SquaredDistance(x, y); d == d {
				t.Errorf("%+v: squared distance %v of a row with %v", c, d, bad)
			}
		}
	}
}

func TestLocalDistancesAllocateNothing(t *testing.T) {
	x, y, dx := make([]float32, 256), make([]float32, 256), make([]float32, 256)
	Fill(x, .25)
	if n := allocs.PerRun(10, func() {
		ProductAngleGrad(dx, 1, x, y, 16, ProductAngle(x, y, 16)+float32(SquaredDistance(x, y)))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
