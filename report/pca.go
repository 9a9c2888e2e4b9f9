package report

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// PCA returns the coordinates of n rows of c channels on their two principal components,
// and the share of the variance that each of both explains. The sign of a component is
// such that its largest coordinate by size is positive. With one row or without any
// spread all coordinates are 0. It fails for numbers that are not finite.
func PCA(x []float64, n, c int) (xy [][2]float64, share [2]float64, err error) {
	if n < 0 || c < 0 || len(x) != n*c {
		return nil, share, fmt.Errorf("report: %d numbers are no %d rows of %d channels", len(x), n, c)
	}
	xy, x = make([][2]float64, n), slices.Clone(x)
	switch total := centre(x, n, c); {
	case math.IsNaN(total) || math.IsInf(total, 0):
		return nil, share, errors.New("report: features that are not finite have no principal components")
	case n < 2 || total == 0:
		return xy, share, nil
	}
	var pc stat.PC
	if !pc.PrincipalComponents(mat.NewDense(n, c, x), nil) {
		return nil, share, errors.New("report: the principal components of the features do not converge: are they finite?")
	}
	var axes mat.Dense
	pc.VectorsTo(&axes)
	_, have := axes.Dims()
	vars := pc.VarsTo(nil)
	sum := 0.0
	for _, v := range vars {
		sum += v
	}
	for k := range min(2, have) {
		if sum > 0 {
			share[k] = vars[k] / sum
		}
		largest := 0.0
		for i := range n {
			v := 0.0
			for j := range c {
				v += x[i*c+j] * axes.At(j, k)
			}
			xy[i][k] = v
			if math.Abs(v) > math.Abs(largest) {
				largest = v
			}
		}
		if largest < 0 {
			for i := range xy {
				xy[i][k] = -xy[i][k]
			}
		}
	}
	return xy, share, nil
}

// centre takes the mean of every channel away, in place, and returns the sum of squares
// that is left.
func centre(x []float64, n, c int) float64 {
	sum := 0.0
	for j := range c {
		mean := 0.0
		for i := range n {
			mean += x[i*c+j] / float64(n)
		}
		for i := range n {
			x[i*c+j] -= mean
			sum += x[i*c+j] * x[i*c+j]
		}
	}
	return sum
}
