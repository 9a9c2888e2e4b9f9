// Package bicubic resamples grids as PyTorch's interpolate does with mode "bicubic" and align_corners=False: half-pixel
// centres, the coefficient -0.75, borders repeated, no smoothing where a grid is made smaller; or, by Smooth, as it
// does with antialias=True and Pillow resizes.
package bicubic

import "math"

// Taps returns the four places of a grid of n that place i of a resampled one is made of, and their weights.
// scale is n over the size of the resampled grid.
func Taps(i int, scale float64, n int) (at [4]int, w [4]float64) {
	const a = -0.75
	pos := (float64(i)+0.5)*scale - 0.5
	base := math.Floor(pos)
	for k := range 4 {
		p := base - 1 + float64(k)
		d := math.Abs(pos - p)
		if d <= 1 {
			w[k] = (a+2)*d*d*d - (a+3)*d*d + 1
		} else if d < 2 {
			w[k] = a*d*d*d - 5*a*d*d + 8*a*d - 4*a
		}
		at[k] = min(max(int(p), 0), n-1)
	}
	return at, w
}

// Resize resamples values (rows, columns) to (height, width).
func Resize(values []float64, rows, columns, height, width int) []float64 {
	wide := make([]float64, rows*width) // (rows, width)
	for x := range width {
		at, w := Taps(x, float64(columns)/float64(width), columns)
		for r := range rows {
			for k := range at {
				wide[r*width+x] += w[k] * values[r*columns+at[k]]
			}
		}
	}
	out := make([]float64, height*width)
	for y := range height {
		at, w := Taps(y, float64(rows)/float64(height), rows)
		row := out[y*width:][:width]
		for k := range at {
			for x, v := range wide[at[k]*width:][:width] {
				row[x] += w[k] * v
			}
		}
	}
	return out
}
