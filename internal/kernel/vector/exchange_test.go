package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// CompareExchange and MaxColumns do what their plain twins do at every level, ties and special values included.
func TestCompareExchange(t *testing.T) {
	defer cpu.SetLevel(cpu.Level())
	for _, level := range []string{cpu.AVX2, cpu.AVX512} {
		if cpu.SetLevel(level); cpu.Level() != level {
			t.Logf("%s is not available", level)
			continue
		}
		r := rand.New(rand.NewPCG(21, 22))
		for n := range 100 {
			x := make([][]float32, 4) // both rows, and again for the plain one
			ints := make([][]int32, 4)
			for i := range 2 {
				x[i], _ = vectorSlice(r, n, true)
				for j := range x[i] {
					if i == 1 && r.IntN(3) == 0 {
						x[1][j] = x[0][j]
					}
					ints[i] = append(ints[i], r.Int32N(5)-2)
				}
				x[i+2], ints[i+2] = append([]float32{}, x[i]...), append([]int32{}, ints[i]...)
			}
			top, at := append([]float32{}, x[0]...), append([]int32{}, ints[0]...)
			wantTop, wantAt := append([]float32{}, x[0]...), append([]int32{}, ints[0]...)
			MaxColumns(top, at, x[1], 77)
			plainMaxColumns(wantTop, wantAt, x[1], 77)
			for j := range n {
				if math.Float32bits(top[j]) != math.Float32bits(wantTop[j]) || at[j] != wantAt[j] {
					t.Fatalf("%s, %d: the larger of %v and %v is %v of %d, want %v of %d", level, n, x[0][j], x[1][j], top[j], at[j], wantTop[j], wantAt[j])
				}
			}
			CompareExchange(x[0], x[1], ints[0], ints[1])
			plainCompareExchange(x[2], x[3], ints[2], ints[3])
			for i := range 2 {
				for j := range n {
					if math.Float32bits(x[i][j]) != math.Float32bits(x[i+2][j]) || ints[i][j] != ints[i+2][j] {
						t.Fatalf("%s, %d: row %d at %d: %v of %d, want %v of %d", level, n, i, j, x[i][j], ints[i][j], x[i+2][j], ints[i+2][j])
					}
				}
			}
		}
	}
	for name, f := range map[string]func(){
		"CompareExchange":  func() { CompareExchange(make([]float32, 3), make([]float32, 2), make([]int32, 3), make([]int32, 3)) },
		"MaxColumns, at":   func() { MaxColumns(make([]float32, 3), make([]int32, 2), make([]float32, 3), 0) },
		"MaxColumns, of x": func() { MaxColumns(make([]float32, 3), make([]int32, 3), make([]float32, 2), 0) },
	} {
		if !panics(f) {
			t.Errorf("%s: slices of different lengths pass", name)
		}
	}
}
