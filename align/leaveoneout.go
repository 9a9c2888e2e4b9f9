package align

import (
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gonum.org/v1/gonum/mat"
)

// leftOut is the number of pairs that leave-one-out looks at, evenly spread over all.
const leftOut = 4096

// leaveOneOut returns the penalty of a ridge map from side s, in units of the covariance,
// whose predictions of pairs that were left out have the least squared error. The
// eigendecomposition of all pairs gives every one of them (PRESS, Allen 1974):
//
//	y_i - y_-i = (y_i - yhat_i) / (1 - h_i),  h_i = 1/N + sum_r p_ir^2 / (N (value_r + lambda))
//
// p_i is row i on the eigenvectors. The 1/N is the mean's part.
func leaveOneOut(e *compute.Engine, p Pairs, m *Moments, s Side) (float64, error) {
	spectrum, err := m.spectrum(s)
	if err != nil {
		return 0, err
	}
	index := spread(m.Count, leftOut)
	p = p.Select(index)
	var rows [2][]float32
	for _, side := range []Side{Image, Text} {
		if rows[side], err = readAll(e, side, p.Of(side)); err != nil {
			return 0, err
		}
		m.prepareRows(e, side, rows[side])
	}
	var cross mat.Dense
	cross.Mul(spectrum.vectors.T(), m.cross(s))
	n, r, d, t := len(index), len(spectrum.values), len(m.Mean[s]), len(m.Mean[s.Other()])
	on, target := make([]float32, n*r), floats(&cross) // (n, R), (R, T)
	e.Gemm(false, false, n, r, d, 1, rows[s], d, floats(spectrum.vectors), r, 0, on, r)

	best, least := 0., math.Inf(1)
	scaled, predicted, errors := make([]float32, r*t), make([]float32, n*t), make([]float64, n)
	for _, lambda := range Lambdas {
		lambda *= m.scale(s)
		for k, v := range spectrum.values {
			vector.Scale(scaled[k*t:][:t], float32(1/(v+lambda)), target[k*t:][:t])
		}
		e.Gemm(false, false, n, t, r, 1, on, r, scaled, t, 0, predicted, t)
		e.For(n, 16, func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				var h float64
				if !m.KeepMean {
					h = 1
				}
				for k, v := range on[i*r:][:r] {
					h += float64(v) * float64(v) / (spectrum.values[k] + lambda)
				}
				rest := max(1-h/float64(m.Count), noise)
				errors[i] = vector.SquaredDistance(predicted[i*t:][:t], rows[s.Other()][i*t:][:t]) / (rest * rest)
			}
		})
		var sum float64
		for _, v := range errors {
			sum += v
		}
		if sum < least {
			best, least = lambda, sum
		}
	}
	return best, nil
}

// spread returns at most most of n indices, evenly spaced.
func spread(n, most int) []int32 {
	out := make([]int32, min(n, most))
	for i := range out {
		out[i] = int32(i * n / len(out))
	}
	return out
}

// floats returns a matrix as float32, row by row.
func floats(m mat.Matrix) []float32 {
	r, c := m.Dims()
	out := make([]float32, r*c)
	for i := range r {
		for j := range c {
			out[i*c+j] = float32(m.At(i, j))
		}
	}
	return out
}
