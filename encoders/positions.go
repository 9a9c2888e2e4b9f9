package encoders

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/bicubic"
)

// InterpolatePositions resamples a position table (m+s*s, D) of m class tokens, which come
// first, to a grid of another size, (m+to*to, D): class rows are kept, the grid is
// resampled bicubically with half-pixel centres (PyTorch's interpolate with
// align_corners=False, coefficient -0.75, borders repeated).
func InterpolatePositions(table []float32, width, classes, to int) ([]float32, error) {
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
		ys, yw := bicubic.Taps(y, scale, from)
		for x := range to {
			xs, xw := bicubic.Taps(x, scale, from)
			row := dst[(y*to+x)*width:][:width]
			for i := range 4 {
				for j := range 4 {
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
