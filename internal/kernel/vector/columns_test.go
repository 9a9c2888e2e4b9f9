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
							if math.Abs(got[k][j]-want[k][j]) > 1e-12 {
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
						if math.Abs(float64(y[i]-z[i])) > 4e-6 || math.Abs(float64(dx[i]-dz[i])) > 8e-6 {
							t.Fatalf("%d x %d, ReLU %t: element %d is %g and its gradient %g, want %g and %g", rows, n, relu, i, y[i], dx[i], z[i], dz[i])
						}
					}
				}
			}
		}
	})
}

// TestColumnsRefuse: sums without room and rows that do not fit are refused.
func TestColumnsRefuse(t *testing.T) {
	for name, f := range map[string]func(){
		"room": func() { ColumnMoments(make([]float64, 4), make([]float64, 4), make([]float32, 5), make([]float32, 5)) },
		"rows": func() { (&Columns{Mean: make([]float32, 3)}).Apply(make([]float32, 4), make([]float32, 4), nil) },
		"dy": func() {
			(&Columns{Mean: make([]float32, 2)}).Sums(make([]float64, 4), make([]float64, 4), make([]float32, 4), make([]float32, 3))
		},
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
