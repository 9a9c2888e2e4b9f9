package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gonum.org/v1/gonum/mat"
)

// Linear is a map that is one linear layer for each side, followed by unit length: y = W x + b.
// The shared space may have several parts. Each is brought to length sqrt(weight), and the
// weights sum to 1, so that the product of two rows is the weighted mean of their cosines in
// the parts.
type Linear struct {
	shape  linearShape
	weight [2][]float32 // (C, D) and (C, E)
	bias   [2][]float32 // (C)
}

var _ Map = (*Linear)(nil)

// newLinear returns the map of prepared rows times maps[side] (D, C) of one part. The means
// of m become biases.
func newLinear(m *Moments, image, text mat.Matrix) *Linear {
	l := &Linear{}
	_, c := image.Dims()
	l.shape.Parts, l.shape.Weights = []int{c}, []float64{1}
	for s, w := range []mat.Matrix{image, text} {
		d, _ := w.Dims()
		l.shape.Widths[s] = d
		l.weight[s], l.bias[s] = make([]float32, c*d), make([]float32, c)
		for j := range c {
			var b float64
			for k := range d {
				v := w.At(k, j)
				l.weight[s][j*d+k] = float32(v)
				b -= v * m.Mean[s][k]
			}
			l.bias[s][j] = float32(b)
		}
	}
	return l
}

// Width returns C.
func (l *Linear) Width() int { return len(l.bias[Image]) }

// RowWidth implements Map.
func (l *Linear) RowWidth(s Side) int { return l.shape.Widths[s] }

// Parts returns the number of parts of the shared space.
func (l *Linear) Parts() int { return len(l.shape.Parts) }

// Layer returns weight (C, D), row by row, and bias (C) of a side. They are the map's own.
func (l *Linear) Layer(s Side) (weight, bias []float32) { return l.weight[s], l.bias[s] }

// Apply implements Map.
func (l *Linear) Apply(e *compute.Engine, s Side, rows []float32) ([]float32, error) {
	out, err := l.project(e, s, rows)
	if err != nil {
		return nil, err
	}
	c := l.Width()
	e.For(len(out)/c, 16, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			at := i * c
			for k, width := range l.shape.Parts {
				part := out[at:][:width]
				if unit(part); len(l.shape.Parts) > 1 {
					vector.Scale(part, float32(math.Sqrt(l.shape.Weights[k])), part)
				}
				at += width
			}
		}
	})
	return out, nil
}

// project is the linear layer (n, C).
func (l *Linear) project(e *compute.Engine, s Side, rows []float32) ([]float32, error) {
	d, c := l.shape.Widths[s], l.Width()
	if err := checkQueries(s, rows, d); err != nil {
		return nil, err
	}
	n := len(rows) / d
	out := make([]float32, n*c)
	e.Gemm(false, true, n, c, d, 1, rows, d, l.weight[s], d, 0, out, c)
	vector.AddRows(out, l.bias[s])
	return out, nil
}

// checkQueries tests rows that are to be mapped.
func checkQueries(s Side, rows []float32, d int) error {
	if d < 1 {
		return fmt.Errorf("align: the map is not fitted: call Fit of a method or restore it")
	}
	if len(rows)%d != 0 {
		return fmt.Errorf("align: the %ss are not rows of %d numbers (got %d numbers): give features of the encoder that the map was fitted to", s, d, len(rows))
	}
	for i := range len(rows) / d {
		if err := checkFinite(s, i, rows[i*d:][:d]); err != nil {
			return err
		}
	}
	return nil
}
