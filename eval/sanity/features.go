package sanity

import (
	"fmt"
	"math"
)

// onePoint is the mean cosine of two rows above which they are one point: 1 - 1e-3. Features of a trained model have 0
// to 0.9.
const onePoint = 0.999

// Collapsed says that the rows of a side are nearly one point. cosine is the mean cosine of two of n rows.
func Collapsed(side string, cosine float64, n int) string {
	if n < 2 || !(cosine > onePoint) {
		return ""
	}
	return fmt.Sprintf("the features of the %s are nearly one point: the mean cosine of two of them is %.5f", side,
		cosine)
}

// MeanCosine returns the mean cosine of two different rows of x (n, d), without those that are zero; n counts the
// others.
func MeanCosine(x []float32, d int) (cosine float64, n int) {
	sum := make([]float64, d)
	for i := 0; i+d <= len(x); i += d {
		row := x[i : i+d]
		length := 0.0
		for _, v := range row {
			length += float64(v) * float64(v)
		}
		if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
			continue
		}
		length = math.Sqrt(length)
		for k, v := range row {
			sum[k] += float64(v) / length
		}
		n++
	}
	if n < 2 {
		return 0, n
	}
	squares := 0.0
	for _, v := range sum {
		squares += v * v
	}
	return (squares - float64(n)) / (float64(n) * float64(n-1)), n
}

// dominates is the share of the variance of all columns above which one alone decides distances and cosines.
const dominates = 0.99

// Column says that one column of a file of features has nearly all of its variance. largest is the largest value in it.
func Column(file string, column, columns int, share, largest float64) string {
	if columns < 4 || !(share > dominates) {
		return ""
	}
	return fmt.Sprintf("column %d of %s has %.4g %% of the variance of all %d (values up to %.3g): it alone decides what is near; scale the columns or leave it out", column, file, 100*share, columns, largest)
}

// moved is the change of a mean of recalls, in points, from which ties are told.
const moved = 0.05

// Ties says that equal scores move the mean of recalls: worst counts them against the model, mean is over all orders of
// them.
func Ties(worst, mean float64) string {
	if mean-worst < moved {
		return ""
	}
	return fmt.Sprintf("scores tie: the mean of recalls is %.1f where ties count against the model and %.1f on the average over their orders (eval.ties)", worst, mean)
}
