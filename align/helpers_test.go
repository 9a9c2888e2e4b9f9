package align

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
	"gonum.org/v1/gonum/mat"
)

// engine opens an engine for a test.
func engine(t testing.TB) *compute.Engine {
	t.Helper()
	e := check.Get(compute.New(compute.Options{Threads: 2}))(t)
	t.Cleanup(e.Close)
	return e
}

// gauss returns n rows of d normal numbers.
func gauss(seed uint64, n, d int) Table {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float32, n*d)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return Table{out, d}
}

// rotation returns a random orthogonal matrix (d, d).
func rotation(seed uint64, d int) *mat.Dense {
	var qr mat.QR
	qr.Factorize(mat.NewDense(d, d, widen(gauss(seed, d, d).Data)))
	var q mat.Dense
	qr.QTo(&q)
	return &q
}

// times returns rows times a matrix (D, E), plus a shift.
func times(t Table, m mat.Matrix, shift float64) Table {
	_, e := m.Dims()
	var out mat.Dense
	out.Mul(mat.NewDense(t.Rows(), t.D, widen(t.Data)), m)
	data := floats(&out)
	for i := range data {
		data[i] += float32(shift)
	}
	return Table{data, e}
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// scores returns the products of mapped rows (n, t).
func scores(t testing.TB, e *compute.Engine, m Map, images, texts []float32) []float64 {
	t.Helper()
	x := check.Get(m.Apply(e, Image, images))(t)
	y := check.Get(m.Apply(e, Text, texts))(t)
	c := m.Width()
	var out mat.Dense
	out.Mul(mat.NewDense(len(x)/c, c, widen(x)), mat.NewDense(len(y)/c, c, widen(y)).T())
	return out.RawMatrix().Data
}

// near compares numbers.
func near(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= tolerance) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// wantError tests that an error names what and cure.
func wantError(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error: want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
