package vector

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
)

// TestHalfPasses compares passes that write or read bfloat16 with the float32 pass and
// a conversion of its result or operand, for lengths around that of a piece.
func TestHalfPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, n := range []int{0, 1, 31, 32, 33, halfPiece - 1, halfPiece, halfPiece + 1, 2*halfPiece + 77} {
		x, y, want := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = 4*float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		bits := make([]int32, (n+31)/32)
		for i := range bits {
			bits[i] = int32(r.Uint32())
		}
		got, rounded := make([]uint16, n), make([]uint16, n)
		for name, f := range map[string][2]func(){
			"GELU":     {func() { GELU(want, x) }, func() { ByGELU.ToBF16(got, x) }},
			"GELUGrad": {func() { GELUGrad(want, x, y) }, func() { ByGELU.GradToBF16(got, x, y) }},
			"Dropout":  {func() { Dropout(want, x, bits, 1.25) }, func() { DropoutToBF16(got, x, bits, 1.25) }},
		} {
			f[0]()
			f[1]()
			ToBF16(rounded, want)
			if !slices.Equal(got, rounded) {
				t.Errorf("%s of %d values is not that of float32, rounded", name, n)
			}
			if a := allocs.PerRun(5, f[1]); a != 0 {
				t.Errorf("%s allocates %v times", name, a)
			}
		}
		const rows = 5
		half, wide := make([]uint16, rows*n), make([]float32, rows*n)
		for i := range half {
			half[i] = plainHalf(float32(r.NormFloat64()))
		}
		FromBF16(wide, half)
		sum := slices.Clone(y)
		SumRows(y, wide)
		SumRowsBF16(sum, half)
		if !slices.Equal(sum, y) {
			t.Errorf("SumRows of %d columns differs from that of float32", n)
		}
	}
	for name, f := range map[string]func(){
		"ToBF16 of GELU": func() { ByGELU.ToBF16(make([]uint16, 600), make([]float32, 599)) },
		"GradToBF16":     func() { ByGELU.GradToBF16(make([]uint16, 600), make([]float32, 600), make([]float32, 599)) },
		"DropoutToBF16":  func() { DropoutToBF16(make([]uint16, 600), make([]float32, 600), make([]int32, 18), 1) },
		"SumRowsBF16":    func() { SumRowsBF16(make([]float32, 3), make([]uint16, 4)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s takes slices that do not fit", name)
				}
			}()
			f()
		}()
	}
}
