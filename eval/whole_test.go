package eval

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestWholeNumbers: what is right everywhere is 100 % of any number, and what is the same everywhere is 1 or -1, to the
// last digit.
func TestWholeNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := 1; n <= 60; n++ {
		table := NewClassTable(make([]string, n))
		own, x := make([]int, 10*n), make([]float64, n+1)
		for k := range n {
			table.Add(int32(k), int32(k))
		}
		if got := table.Top1(); got != 100 {
			t.Errorf("top-1 of %d classes: %v", n, got)
		}
		ids := make([]int, 10*n)
		for i := range own {
			own[i], ids[i] = i, i/10 // ten images with a text each are right answers for each other
		}
		c := check.Get(NewCorrespondence(ids, own))(t)
		p, err := MeasurePrecision(c, 64, func(row, rows int, dst []float32) error {
			for i := range rows {
				for j := range own {
					dst[i*len(own)+j] = float32(one(c.right(row+i, j)))
				}
			}
			return nil
		})
		if want := (PrecisionAt{100, 100}); err != nil || p.I2T != want || p.T2I != want {
			t.Errorf("precision of %d times ten images: %+v, %v", n, p, err)
		}
		if want := float64(10*n+1) / 11; c.Chance().I2T.MeanRank != want || c.Chance().T2I.MeanRank != want {
			t.Errorf("mean rank of %d images by chance: %v, want %v", 10*n, c.Chance(), want)
		}
		for i := range x {
			x[i] = r.NormFloat64()
		}
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = -3 * v
		}
		for _, c := range []Correlation{Correlate(x, x), Correlate(x, y)} {
			if c.Pearson > 1 || c.Pearson < -1 {
				t.Errorf("correlation of %d numbers: %v", n+1, c.Pearson)
			}
		}
	}
}
