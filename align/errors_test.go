package align

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// failing is rows of a disk that fails at row 5.
type failing struct{ Table }

func (f failing) Row(i int, dst []float32) error {
	if i == 5 {
		return errors.New("the disk fails")
	}
	return f.Table.Row(i, dst)
}

// constant is n rows of d numbers that are all the same, with a mean that rounds.
func constant(n, d int) Table {
	out := make([]float32, n*d)
	for i := range out {
		out[i] = 0.1 + 0.37*float32(i%d)
	}
	return Table{out, d}
}

// TestSameRows: rows that are all the same are told so, whatever their mean is rounded to.
func TestSameRows(t *testing.T) {
	e := engine(t)
	for _, n := range []int{5, 7, 30, blockRows + 1} {
		p := Pairs{constant(n, 6), gauss(2, n, 4)}
		for _, method := range []Method{Ridge{}, Procrustes{}, CCA{}, CSA{}, Wasserstein{}} {
			if _, err := method.Fit(e, p); err == nil {
				t.Errorf("%d rows: %T is fitted to them", n, method)
			} else {
				wantError(t, err, "rows of the images are all the same", "rows that differ")
			}
		}
		for _, prepare := range []Prepare{{}, {KeepMean: true}, {KeepLength: true},
			{KeepMean: true, KeepLength: true}} {
			if f, err := Forecast(e, p, ForecastOptions{Prepare: prepare, Permutations: 1}); err == nil {
				t.Errorf("%d rows: the forecast is %+v", n, f)
			} else {
				wantError(t, err, "rows of the images have no shape", "rows that differ")
			}
		}
		if got, _, err := Span(e, Image, p.Image); err != nil || got != 0 {
			t.Errorf("%d rows: they differ in %d directions (%v)", n, got, err)
		}
		// One row in the last block that differs is enough, by little.
		one := constant(n, 6)
		one.Data[len(one.Data)-1] *= 1.0001
		if _, err := (CCA{}).Fit(e, Pairs{one, p.Text}); err != nil {
			t.Error(err)
		}
		if got, _, err := Span(e, Image, one); n <= 256 && (err != nil || got != 1) {
			t.Errorf("%d rows, one of which differs: %d directions (%v)", n, got, err)
		}
	}
}

// TestFitErrors names what is wrong and the cure.
func TestFitErrors(t *testing.T) {
	e := engine(t)
	good, nan, same := gauss(1, 30, 5), gauss(2, 30, 4), constant(30, 4)
	nan.Data[4*17+2] = float32(math.NaN())
	for _, method := range []Method{Ridge{}, Procrustes{}, CCA{}, CSA{}, ASIF{}} {
		_, err := method.Fit(e, Pairs{good, nan})
		wantError(t, err, "row 17 of the texts", "column 2", "leave the pair out")
		_, err = method.Fit(e, Pairs{good, gauss(1, 29, 4)})
		wantError(t, err, "30 image rows and 29 text rows", "one pair")
		_, err = method.Fit(e, Pairs{good, failing{gauss(1, 30, 4)}})
		wantError(t, err, "texts: the disk fails")
		_, err = method.Fit(e, Pairs{Image: good})
		wantError(t, err, "both sides")
	}
	for _, method := range []Method{Ridge{}, Procrustes{}, CCA{}, CSA{}} {
		_, err := method.Fit(e, Pairs{gauss(1, 1, 5), gauss(2, 1, 4)})
		wantError(t, err, "at least 2 pairs (got 1)", "add pairs")
		_, err = method.Fit(e, Pairs{good, same})
		wantError(t, err, "30 rows of the texts are all the same")
	}
	// A mark for a missing number, and rows whose products are beyond float32.
	marked, long := gauss(2, 30, 4), gauss(2, 30, 4)
	marked.Data[7], marked.Data[11] = -math.MaxFloat32, -math.MaxFloat32
	for i := range long.Data {
		long.Data[i] *= 1e25
	}
	for name, method := range map[string]Method{"ridge": Ridge{}, "procrustes": Procrustes{}, "cca": CCA{},
		"csa": CSA{}, "wasserstein": Wasserstein{}} {
		t.Run(name, func(t *testing.T) {
			_, err := method.Fit(e, Pairs{good, marked})
			wantError(t, err, "rows of the texts", "extreme size")
		})
	}
	for _, method := range []Method{Ridge{Prepare: Prepare{KeepLength: true}},
		CCA{Prepare: Prepare{KeepLength: true}}} {
		_, err := method.Fit(e, Pairs{long, good})
		wantError(t, err, "rows of the images", "extreme size")
	}
	p := Pairs{good, gauss(2, 30, 4)}
	for _, c := range []struct {
		method Method
		words  []string
	}{
		{Ridge{Lambda: -1}, []string{"Ridge.Lambda", ">= 0", "-1"}},
		{Ridge{Lambda: math.NaN()}, []string{"Ridge.Lambda", "NaN"}},
		{Ridge{Direction: "up"}, []string{"Ridge.Direction", "choose"}},
		{CCA{Lambda: -1}, []string{"CCA.Lambda"}},
		{CCA{Power: -1}, []string{"CCA.Power"}},
		{CCA{Power: 2, Unweighted: true}, []string{"exclude each other"}},
		{CSA{Components: 5}, []string{"at most 4", "got 5", "lower it"}},
		{ASIF{K: 31}, []string{"at most the number of anchors, 30 (got 31)", "lower it"}},
		{ASIF{P: -1}, []string{"ASIF.P"}},
		{ASIF{Chunk: -1}, []string{"ASIF.Chunk"}},
	} {
		_, err := c.method.Fit(e, p)
		wantError(t, err, c.words...)
	}
}

// TestApplyErrors does the same for rows that are mapped.
func TestApplyErrors(t *testing.T) {
	e := engine(t)
	for _, method := range []Method{CCA{}, CSA{}, ASIF{}} {
		m := check.Get(method.Fit(e, Pairs{gauss(1, 30, 5), gauss(2, 30, 4)}))(t)
		_, err := m.Apply(e, Image, make([]float32, 12))
		wantError(t, err, "not rows of 5 numbers (got 12", "encoder")
		_, err = m.Apply(e, Text, []float32{1, 2, 3, 4, 5, 6, float32(math.Inf(1)), 8})
		wantError(t, err, "row 1 of the texts", "column 2")
	}
	_, err := new(Linear).Apply(e, Image, nil)
	wantError(t, err, "not fitted")
}

// TestWidths: ranks and cosines of pairs of other widths than the map's, of which flat rows tell nothing, are refused.
func TestWidths(t *testing.T) {
	e := engine(t)
	m := check.Get(CCA{}.Fit(e, Pairs{gauss(1, 30, 6), gauss(2, 30, 4)}))(t)
	for _, c := range []struct {
		d, e  int
		words string
	}{
		{12, 8, "rows of the images have 12 numbers, the map takes 6"},
		{3, 2, "rows of the images have 3 numbers, the map takes 6"},
		{6, 8, "rows of the texts have 8 numbers, the map takes 4"},
	} {
		p := Pairs{gauss(3, 20, c.d), gauss(4, 20, c.e)}
		_, err := Rank(e, m, p)
		wantError(t, err, c.words, "encoder that the map was fitted to")
		_, _, err = MeanCosines(e, m, p, 100)
		wantError(t, err, c.words)
	}
	_, err := Rank(e, new(Linear), Pairs{gauss(3, 20, 6), gauss(4, 20, 4)})
	wantError(t, err, "not fitted")
	_, _, err = MeanCosines(e, m, Pairs{}, 100)
	wantError(t, err, "both sides")
	_, _, err = MeanCosines(e, m, Pairs{gauss(3, 20, 6), gauss(4, 19, 4)}, 100)
	wantError(t, err, "20 image rows and 19 text rows")
	_, _, err = MeanCosines(e, m, Pairs{gauss(3, 20, 6), gauss(4, 20, 4)}, 0)
	wantError(t, err, "at most 0 pairs")
}

// TestShortRows: rows whose length float32 cannot divide by have unit length all the same.
func TestShortRows(t *testing.T) {
	e := engine(t)
	p := Pairs{gauss(1, 30, 5), gauss(2, 30, 4)}
	row := []float32{1e-39, -2e-39, 3e-40, 5e-41, 4e-40}
	long := make([]float32, len(row))
	for i, v := range row {
		long[i] = v * 1e30 * 1e9
	}
	for _, method := range []Method{Procrustes{Prepare: Prepare{KeepMean: true}}, ASIF{K: 9}} {
		m := check.Get(method.Fit(e, p))(t)
		got := check.Get(m.Apply(e, Image, row))(t)
		want := check.Get(m.Apply(e, Image, long))(t)
		near(t, fmt.Sprintf("%T", m), widen(got), widen(want), 1e-3) // short rows have few digits
	}
}

// TestRaggedTable: numbers that are not whole rows are an error, not rows without the rest.
func TestRaggedTable(t *testing.T) {
	e := engine(t)
	good, ragged := gauss(1, 30, 5), Table{make([]float32, 30*4+2), 4}
	copy(ragged.Data, gauss(2, 30, 4).Data)
	for _, method := range []Method{Ridge{}, CCA{}, ASIF{}, Wasserstein{}} {
		_, err := method.Fit(e, Pairs{good, ragged})
		wantError(t, err, "texts", "122 numbers are not rows of width 4", "whole rows")
	}
	_, _, err := Span(e, Text, ragged)
	wantError(t, err, "not rows of width 4")
}
