package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// TestColumns compares the passes over several rows with their plain twins, row by row, for widths that end within vectors.
func TestColumns(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 1))
		values := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = 4*r.Float32() - 2
			}
			return x
		}
		for _, n := range []int{1, 3, 4, 7, 16, 18, 33, 64, 100} {
			for _, rows := range []int{0, 1, 2, 5} {
				for _, relu := range []bool{false, true} {
					c := &Columns{values(n), values(n), values(n), relu}
					x, dy, a, b := values(rows*n), values(rows*n), values(n), values(n)
					got, want := [2][]float64{make([]float64, SumsRoom(n)), make([]float64, SumsRoom(n))}, [2][]float64{make([]float64, n), make([]float64, n)}
					ColumnMoments(got[0], got[1], x, c.Mean)
					plainColumnMoments(want[0], want[1], x, c.Mean)
					c.Sums(got[0], got[1], x, dy)
					c.plainSums(want[0], want[1], x, dy)
					for k := range 2 {
						for j := range n {
							if !(math.Abs(got[k][j]-want[k][j]) <= 1e-12) {
								t.Fatalf("%d x %d, ReLU %t: sum %d of column %d is %g, want %g", rows, n, relu, k, j, got[k][j], want[k][j])
							}
						}
					}
					y, z, dx, dz := values(rows*n), values(rows*n), values(rows*n), values(rows*n)
					c.Apply(y, x, nil)
					c.plainApply(z, x, nil)
					c.Grad(dx, x, dy, a, b)
					c.plainGrad(dz, x, dy, a, b)
					for i := range y {
						if !(math.Abs(float64(y[i]-z[i])) <= 4e-6) || !(math.Abs(float64(dx[i]-dz[i])) <= 8e-6) {
							t.Fatalf("%d x %d, ReLU %t: element %d is %g and its gradient %g, want %g and %g", rows, n, relu, i, y[i], dx[i], z[i], dz[i])
						}
					}
				}
			}
		}
	})
}

// TestColumnsRefuse: sums without room, rows that do not fit and slices that are too short are refused at every level.
func TestColumnsRefuse(t *testing.T) {
	of := func(n int) []float32 { return make([]float32, n) }
	c := &Columns{Mean: of(2), Scale: of(2), Shift: of(2)}
	kerneltest.EachLevel(t, func(t *testing.T) {
		for name, f := range map[string]func(){
			"room":         func() { ColumnMoments(make([]float64, 4), make([]float64, 4), of(5), of(5)) },
			"room of Sums": func() { c.Sums(make([]float64, 4), make([]float64, 1), of(4), of(4)) },
			"rows":         func() { c.Apply(of(5), of(5), nil) },
			"y":            func() { c.Apply(of(3), of(4), nil) },
			"add":          func() { c.Apply(of(4), of(4), of(3)) },
			"dx":           func() { c.Grad(of(3), of(4), of(4), of(2), of(2)) },
			"b":            func() { c.Grad(of(4), of(4), of(4), of(2), of(1)) },
			"dy":           func() { c.Sums(make([]float64, 4), make([]float64, 4), of(4), of(3)) },
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
	})
}
