package encoders

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/bicubic"
)

// InterpolatePositions resamples a position table (m+s*s, D) of m class tokens, which come
// first, to a grid of another size, (m+to*to, D): class rows are kept, the grid is
// resampled bicubically with half-pixel centres (PyTorch's interpolate with
// align_corners=False, coefficient -0.75, borders repeated). A table that is no square grid behind
// its class tokens is an error, as is a size below 1.
func InterpolatePositions(table []float32, width, classes, to int) ([]float32, error) {
	return resamplePositions(table, width, classes, to, func(i int, scale float64, n int) ([]int, []float64) {
		at, w := bicubic.Taps(i, scale, n)
		return at[:], w[:]
	})
}

// SmoothPositions is InterpolatePositions by another law: that of PyTorch's interpolate with antialias=True
// (coefficient -0.5, smoothed where the grid is made smaller, nothing beyond the borders), by which timm, open_clip and
// DINOv2 with registers resample. Shapes and errors are those of InterpolatePositions.
func SmoothPositions(table []float32, width, classes, to int) ([]float32, error) {
	return resamplePositions(table, width, classes, to, func(i int, scale float64, n int) ([]int, []float64) {
		first, w := bicubic.Smooth(nil, i, scale, n, bicubic.Kernel, bicubic.Radius)
		at := make([]int, len(w))
		for k := range at {
			at[k] = first + k
		}
		return at, w
	})
}

// resamplePositions resamples the grid of a table along both axes: taps returns the places of an axis of n that place i
// of the new one is made of, and their weights, with scale = n / to.
func resamplePositions(table []float32, width, classes, to int,
	taps func(i int, scale float64, n int) ([]int, []float64)) ([]float32, error) {
	if width < 1 || classes < 0 || to < 1 {
		return nil, fmt.Errorf("encoders: a position table of width %d with %d class tokens cannot be brought to a grid of %d x %d: all must be at least 1, class tokens at least 0", width, classes, to, to)
	}
	from := isqrt(len(table)/width - classes)
	if len(table)%width != 0 || from < 1 {
		return nil, fmt.Errorf("encoders: position table of %d values is no square grid of width %d with %d class tokens", len(table), width, classes)
	}
	out := make([]float32, (classes+to*to)*width)
	first := copy(out, table[:classes*width])
	src, dst := table[first:], out[first:]
	scale := float64(from) / float64(to)
	for y := range to {
		ys, yw := taps(y, scale, from)
		for x := range to {
			xs, xw := taps(x, scale, from)
			row := dst[(y*to+x)*width:][:width]
			for i := range ys {
				for j := range xs {
					w := float32(yw[i] * xw[j])
					in := src[(ys[i]*from+xs[j])*width:][:width]
					for d, v := range in {
						row[d] += w * v
					}
				}
			}
		}
	}
	return out, nil
}
