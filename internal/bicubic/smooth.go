package bicubic

import "math"

// Smooth returns the places, from first on, of a grid of n that place i of a resampled one is made of, and their weights, which
// sum to 1: as PyTorch's interpolate does with antialias=True, by the kernel of coefficient -0.5, which is widened where the grid is
// made smaller, and with nothing beyond the borders. scale is n over the size of the resampled grid.
func Smooth(i int, scale float64, n int) (first int, w []float64) {
	const a = -0.5
	wide := max(scale, 1)
	centre, support := (float64(i)+0.5)*scale, 2*wide
	first = max(int(centre-support+0.5), 0)
	sum := 0.
	for p := first; p < min(int(centre+support+0.5), n); p++ {
		d, v := math.Abs(float64(p)-centre+0.5)/wide, 0.
		if d < 1 {
			v = (a+2)*d*d*d - (a+3)*d*d + 1
		} else if d < 2 {
			v = a*d*d*d - 5*a*d*d + 8*a*d - 4*a
		}
		w = append(w, v)
		sum += v
	}
	for k := range w {
		w[k] /= sum
	}
	return first, w
}
