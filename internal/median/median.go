// Package median has the one median that reports and measurements share.
package median

import "slices"

// Of returns the median of x, which stays as it is: of an even number of values the mean of the two in the middle,
// of none 0.
func Of[T ~int64 | ~float64](x []T) T {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
