package bicubic

import (
	"math"
	"slices"
)

// Smooth sets w to the weights of the places, from first on, of a grid of n that place i of a resampled one is made of,
// which sum to 1: as Pillow resizes, and PyTorch's interpolate with antialias=True, by a kernel that is 0 from radius
// on and widened where the grid is made smaller, with nothing beyond the borders. scale is n over the size of the
// resampled grid. The memory of w is used where it suffices.
func Smooth(
	w []float64, i int, scale float64, n int, kernel func(x float64) float64, radius float64,
) (first int, weights []float64) {
	wide := max(scale, 1)
	centre, support := (float64(i)+0.5)*scale, radius*wide
	first, end := max(int(centre-support+0.5), 0), min(int(centre+support+0.5), n)
	w = slices.Grow(w[:0], end-first)[:end-first]
	sum := 0.
	for k := range w {
		w[k] = kernel((float64(first+k) - centre + 0.5) / wide)
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
	return first, w
}

// Radius is that of Kernel.
const Radius = 2

// Kernel is that of Keys with the coefficient -0.5, of bicubic resampling by Smooth.
func Kernel(x float64) float64 {
	const a = -0.5
	x = math.Abs(x)
	switch {
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}
