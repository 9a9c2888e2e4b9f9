package scoring

import (
	"strings"

	"github.com/geoalign/geoalign/internal/kernel"
)

type Kind string

const (
	Cosine   Kind = "cosine"
	Inner    Kind = "inner"
	L2       Kind = "l2"
	Angle    Kind = "angle"
	GSSF     Kind = "gssf"
	Geodesic Kind = "geodesic"
)

type Space struct {
	SphereDim, Spheres int
	Euclid             bool
}
type Metric struct {
	Form   string
	Blocks int
	Weight []float32
}
type Term struct {
	Kind   Kind
	Weight float32
	Metric *Metric
}
type Score struct {
	Space Space
	Terms []Term
}

func Identity(form string, blocks, dim int) []float32 {
	if form == "dense" {
		blocks = 1
	}
	if form == "diag" {
		blocks = dim
	}
	d := dim / blocks
	out := make([]float32, blocks*d*d)
	for b := range blocks {
		for i := range d {
			out[b*d*d+i*d+i] = 1
		}
	}
	return out
}

func (s Score) String() string {
	var names []string
	for _, t := range s.Terms {
		names = append(names, string(t.Kind))
	}
	return strings.Join(names, " + ")
}
func (s Score) Rows(e *kernel.Engine, images []float32, n int, texts []float32, t int, dst []float32) error {
	c := s.Space.SphereDim * s.Space.Spheres
	f := make([]float32, n*c)
	for _, term := range s.Terms {
		switch {
		case term.Kind == Cosine || term.Kind == Inner || term.Metric.Form == "cosine":
			for i, v := range images[:n*c] {
				f[i] += term.Weight * v
			}
		default:
			blocks := map[string]int{"diag": c, "dense": 1, "block_diag": term.Metric.Blocks}[term.Metric.Form]
			d := c / blocks
			for r := range n {
				for b := range blocks {
					for i := range d {
						for j := range d {
							f[r*c+b*d+j] += term.Weight * images[r*c+b*d+i] * term.Metric.Weight[b*d*d+i*d+j]
						}
					}
				}
			}
		}
	}
	e.Gemm(false, true, n, t, c, 1, f, c, texts, c, 0, dst, t)
	return nil
}
