package ablation

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/geoalign/geoalign/internal/rng"
)

// Interval is a confidence interval at 1 - Level.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Excludes says whether 0 lies outside of it.
func (i Interval) Excludes() bool { return i.Low > 0 || i.High < 0 }

// resamples is the number of bootstrap samples, scipy's default.
const resamples = 9999

// fewest is the number of values below which no interval or p is given: two differences tell nothing about chance.
const fewest = 3

// BCa returns the bias-corrected and accelerated bootstrap interval of the mean of x (Efron 1987), nil for fewer than
// three values. Equal x give equal intervals.
func BCa(x []float64) *Interval {
	if len(x) < fewest {
		return nil
	}
	random := rng.New(1, rng.Bootstrap, 0)
	means := make([]float64, resamples)
	for b := range means {
		sum := 0.0
		for range x {
			sum += x[random.IntN(len(x))]
		}
		means[b] = sum / float64(len(x))
	}
	i := interval(x, means)
	return &i
}

// interval is BCa of given means of resamples of x, which it sorts.
func interval(x, means []float64) Interval {
	slices.Sort(means)
	mean, n := stat.Mean(x, nil), float64(len(x))
	spread := means[len(means)-1] - means[0]
	if spread == 0 {
		return Interval{mean, mean}
	}
	// The bias z0: by which share of the resamples lies below the mean, half of those that equal it included. Sums in
	// another order differ in the last bits.
	near := 1e-9 * spread
	below, _ := slices.BinarySearch(means, mean-near)
	upTo, _ := slices.BinarySearch(means, mean+near)
	z0 := distuv.UnitNormal.Quantile(float64(below+upTo) / float64(2*len(means)))
	// The acceleration a of a mean: the mean without value i differs from the mean of those means by (x_i-mean)/(n-1).
	cubes, squares := 0.0, 0.0
	for _, v := range x {
		d := (v - mean) / (n - 1)
		cubes, squares = cubes+d*d*d, squares+d*d
	}
	a := cubes / (6 * math.Pow(squares, 1.5))
	at := func(p float64) float64 {
		z := z0 + distuv.UnitNormal.Quantile(p)
		return quantile(means, distuv.UnitNormal.CDF(z0+z/(1-a*z)))
	}
	return Interval{at(Level / 2), at(1 - Level/2)}
}

// quantile interpolates linearly between the sorted values, of which the first is at 0 and the last at 1 (type 7 of
// Hyndman and Fan, NumPy's default; gonum's stat.LinInterp is type 4).
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
