package scoring

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// FoldImages sets dst (n, C) to images x (n, C) whose products with texts are the sum of
// the terms that are products: sum_t weight_t W_t^T x. A gallery that is folded once and
// stored is searched by one product for each text; folded images must
// not be normalised again.
func (s Score) FoldImages(dst, x []float32, n int) error {
	c := s.Space.Dim
	if err := s.Check(); err != nil {
		return err
	}
	if len(x) != n*c || len(dst) != n*c {
		return fmt.Errorf("scoring: got %d and %d values for %d images of %d channels", len(dst), len(x), n, c)
	}
	if s.Identity() {
		copy(dst, x)
		return nil
	}
	for r := range n {
		s.fold(dst[r*c:(r+1)*c], x[r*c:(r+1)*c])
	}
	return nil
}

// fold is FoldImages for one row.
func (s Score) fold(dst, x []float32) {
	clear(dst)
	for _, t := range s.Terms {
		switch t.Kind {
		case Cosine, Inner:
			vector.Axpy(dst, t.Weight, x)
		case GSSF:
			t.Metric.add(dst, t.Weight, x)
		}
	}
}

// Rows sets dst (n, t) to the scores of n images (n, C) with t texts (t, C). Beside the
// result it holds the folded images and, for terms that are distances, up to 2 x n x 256
// values for each thread; for the metric mlp the hidden units of 256 pairs.
func (s Score) Rows(e *compute.Engine, images []float32, n int, texts []float32, t int, dst []float32) error {
	c := s.Space.Dim
	if err := s.Check(); err != nil {
		return err
	}
	if len(images) != n*c || len(texts) != t*c || len(dst) < n*t {
		return fmt.Errorf("scoring: got %d values of images, %d of texts and room for %d scores: want %d x %d, %d x %d and %d", len(images), len(texts), len(dst), n, c, t, c, n*t)
	}
	products := false
	for _, term := range s.Terms {
		products = products || term.product()
	}
	if products {
		folded := make([]float32, n*c)
		if err := s.FoldImages(folded, images, n); err != nil {
			return err
		}
		e.Gemm(false, true, n, t, c, 1, folded, c, texts, c, 0, dst, t)
	} else {
		clear(dst[:n*t])
	}
	if s.Folds() {
		return nil
	}
	const columns = 256
	e.For((t+columns-1)/columns, 1, func(_, lo, hi int) {
		work := make([]float32, n*columns)
		for j := lo * columns; j < min(hi*columns, t); j += columns {
			s.distances(e, images, n, texts[j*c:], min(columns, t-j), dst[j:], t, work)
		}
	})
	return nil
}

// distances adds the terms that are distances, and networks of metrics, to n rows of dst, stride apart, for m texts.
// work has room for n*m values.
func (s Score) distances(e *compute.Engine, images []float32, n int, texts []float32, m int, dst []float32, stride int,
	work []float32) {
	c, channels := s.Space.Dim, s.Space.SphereDim()
	for _, t := range s.Terms {
		switch t.Kind {
		case GSSF:
			if t.net() {
				t.Metric.Net.add(e, t.Weight, images, n, texts, m, c, dst, stride)
			}
		case L2:
			dots := work[:n*m]
			e.GemmSerial(false, true, n, m, c, 1, images, c, texts, c, 0, dots, m)
			for j := range m {
				y := texts[j*c : (j+1)*c]
				length := vector.SumSq(y)
				for i := range n {
					x := images[i*c : (i+1)*c]
					dst[i*stride+j] -= t.Weight * vector.Distance(vector.SumSq(x)+length, float64(dots[i*m+j]), x, y)
				}
			}
		case Angle:
			sums := make([]float32, n*m)
			for k := range s.Space.Groups() {
				dots := work[:n*m]
				e.GemmSerial(false, true, n, m, channels, 1, images[k*channels:], c, texts[k*channels:], c, 0, dots, m)
				vector.Acos(dots, dots, vector.AcosLimit)
				for i, a := range dots {
					sums[i] += a * a
				}
			}
			for i := range n {
				for j := range m {
					dst[i*stride+j] -= t.Weight * float32(math.Sqrt(float64(sums[i*m+j])))
				}
			}
		}
	}
}
