package align

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/geoalign/geoalign/internal/check"
)

// linearMethods are methods whose map is a *Linear.
var linearMethods = map[string]Method{
	"ridge":          Ridge{Lambda: 1e-9},
	"ridge, text":    Ridge{Direction: TextToImage},
	"procrustes":     Procrustes{},
	"cca":            CCA{},
	"cca, 8":         CCA{Lambda: 1e-9, Components: 8},
	"kept as it is":  CCA{Prepare: Prepare{KeepMean: true, KeepLength: true}},
	"rotation, size": Procrustes{RotationOnly: true, Scale: true},
}

// TestRotatedCopy finds each row's rotated and shifted copy among all, exactly.
func TestRotatedCopy(t *testing.T) {
	e := engine(t)
	x := gauss(1, 100, 8)
	q := rotation(2, 8)
	if mat.Det(q) < 0 { // a rotation, so that RotationOnly finds it
		for i := range 8 {
			q.Set(i, 0, -q.At(i, 0))
		}
	}
	for name, method := range linearMethods {
		shift := 3.
		if name == "kept as it is" {
			shift = 0
		}
		y := times(x, q, shift)
		m := check.Get(method.Fit(e, Pairs{x, y}))(t)
		s := scores(t, e, m, x.Data, y.Data)
		for i := range 100 {
			if !(s[i*100+i] > 1-1e-5) {
				t.Fatalf("%s: cosine of row %d and its copy is %v", name, i, s[i*100+i])
			}
			for j := range 100 {
				if j != i && s[i*100+j] >= s[i*100+i] {
					t.Fatalf("%s: row %d is nearer to copy %d", name, i, j)
				}
			}
		}
	}
}

// TestReflection says what RotationOnly leaves out.
func TestReflection(t *testing.T) {
	e := engine(t)
	x := gauss(1, 50, 3)
	flip := mat.NewDiagDense(3, []float64{1, 1, -1})
	p := Pairs{x, times(x, flip, 0)}
	for only, sign := range map[bool]float64{false: -1, true: 1} {
		m := check.Get(Procrustes{RotationOnly: only}.Fit(e, p))(t)
		w, _ := m.(*Linear).Layer(Image)
		near(t, "determinant", []float64{mat.Det(mat.NewDense(3, 3, widen(w)))}, []float64{sign}, 1e-5)
	}
}

// TestScale gives images twice as long as texts half the size.
func TestScale(t *testing.T) {
	e := engine(t)
	x := gauss(1, 50, 3)
	p := Pairs{x, times(x, mat.NewDiagDense(3, []float64{.5, .5, .5}), 0)}
	m := check.Get(Procrustes{Prepare: Prepare{KeepLength: true}, Scale: true}.Fit(e, p))(t)
	w, _ := m.(*Linear).Layer(Image)
	near(t, "weight", widen(w), []float64{.5, 0, 0, 0, .5, 0, 0, 0, .5}, 1e-5)
}

// TestLayer says that Apply is the layer with parts of unit length.
func TestLayer(t *testing.T) {
	e := engine(t)
	p := Pairs{gauss(1, 30, 5), gauss(2, 30, 4)}
	fitted := check.Get(Ridge{}.Fit(e, p))(t)
	m := fitted.(*Linear)
	rows := gauss(3, 2, 4).Data
	got := check.Get(m.Apply(e, Text, rows))(t)
	w, b := m.Layer(Text)
	if m.Width() != 9 || len(w) != 9*4 || len(b) != 9 {
		t.Fatalf("width %d, weight %d, bias %d", m.Width(), len(w), len(b))
	}
	for i := range 2 {
		want := make([]float64, 9)
		for j := range want {
			want[j] = float64(b[j])
			for k := range 4 {
				want[j] += float64(w[j*4+k]) * float64(rows[i*4+k])
			}
		}
		for _, part := range [][]float64{want[:5], want[5:]} {
			var sq float64
			for _, v := range part {
				sq += v * v
			}
			for j := range part {
				part[j] /= math.Sqrt(2 * sq)
			}
		}
		near(t, "row", widen(got[i*9:][:9]), want, 1e-5)
	}
}

// TestConcat weighs cosines.
func TestConcat(t *testing.T) {
	e := engine(t)
	p := Pairs{gauss(1, 30, 5), gauss(2, 30, 4)}
	var maps []*Linear
	want := make([]float64, 9)
	rows, texts := gauss(3, 3, 5).Data, gauss(4, 3, 4).Data
	for i, method := range []Method{CCA{}, Procrustes{}} {
		m := check.Get(method.Fit(e, p))(t)
		maps = append(maps, m.(*Linear))
		for k, v := range scores(t, e, m, rows, texts) {
			want[k] += v * []float64{.75, .25}[i]
		}
	}
	m := check.Get(Concat([]float64{3, 1}, maps...))(t)
	near(t, "weighted", scores(t, e, m, rows, texts), want, 1e-5)
	_, err := Concat([]float64{3}, maps...)
	wantError(t, err, "1 weights for 2 maps", "a weight for each")
	_, err = Concat([]float64{3, -1}, maps...)
	wantError(t, err, "weight 1", "above 0")
	other := check.Get(CCA{}.Fit(e, Pairs{gauss(1, 30, 5), gauss(2, 30, 3)}))(t)
	_, err = Concat(nil, maps[0], other.(*Linear))
	wantError(t, err, "[5 3]", "same features")
}

// TestRankDeficient fits features whose columns repeat, and more columns than pairs.
func TestRankDeficient(t *testing.T) {
	e := engine(t)
	x := gauss(1, 40, 3)
	wide := times(x, mat.NewDense(3, 7, widen(gauss(2, 3, 7).Data)), 1) // rank 3 of 7 columns
	for name, method := range linearMethods {
		if c, ok := method.(CCA); ok && c.Components > 0 {
			_, err := method.Fit(e, Pairs{wide, x})
			wantError(t, err, "Components must be at most 3", "got 8")
			continue
		}
		for what, p := range map[string]Pairs{"columns": {wide, times(x, rotation(3, 3), 0)},
			"pairs": {gauss(4, 5, 9), gauss(5, 5, 8)}} {
			m, err := method.Fit(e, p)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, what, err)
			}
			images, _ := readAll(e, Image, p.Image)
			texts, _ := readAll(e, Text, p.Text)
			for i, v := range scores(t, e, m, images, texts) {
				if !(math.Abs(v) <= 1+1e-5) {
					t.Fatalf("%s: %s: score %d is %v", name, what, i, v)
				}
			}
		}
	}
}

// TestZeroRow maps what the map knows nothing of to zeros.
func TestZeroRow(t *testing.T) {
	e := engine(t)
	for name, method := range map[string]Method{"cca": CCA{Prepare: Prepare{KeepMean: true}},
		"csa": CSA{Prepare: Prepare{KeepMean: true}}, "asif": ASIF{}} {
		m := check.Get(method.Fit(e, Pairs{gauss(1, 30, 5), gauss(2, 30, 4)}))(t)
		got := check.Get(m.Apply(e, Image, make([]float32, 5)))(t)
		near(t, name, widen(got), make([]float64, m.Width()), 0)
	}
}

// TestNoise leaves out directions in which pairs differ by rounding alone: rows that do differ
// there are mapped as if they did not.
func TestNoise(t *testing.T) {
	e := engine(t)
	x := gauss(1, 40, 3)
	spread := mat.NewDense(3, 7, widen(gauss(2, 3, 7).Data))
	var svd mat.SVD
	svd.Factorize(spread, mat.SVDFull)
	var v mat.Dense
	svd.VTo(&v) // the last four columns lie outside of the rows' span
	images, texts := times(x, spread, 0), gauss(3, 40, 4)
	m := check.Get(Ridge{Direction: ImageToText, Lambda: 1e-12}.Fit(e, Pairs{images, texts}))(t)
	beside := Table{append([]float32(nil), images.Data...), 7}
	for i := range beside.Data {
		beside.Data[i] += 5 * float32(v.At(i%7, 5))
	}
	near(t, "scores", scores(t, e, m, beside.Data, texts.Data), scores(t, e, m, images.Data, texts.Data), 1e-4)
}
