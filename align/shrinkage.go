package align

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// firm is the shrinkage, in units of the mean eigenvalue, from which on a covariance is
// inverted as it is: no direction of noise is large then.
const firm = 1e-3

// shrunk returns the Cholesky factors of a side's covariance with lambda on its diagonal. They
// take a tenth of the time of the eigendecomposition, and there are none where that is at
// hand or cheap, or where noise would count.
func (m *Moments) shrunk(s Side, lambda float64) *mat.Cholesky {
	if m.spectra[s] != nil || m.few[s] != nil || lambda < firm*m.scale(s) {
		return nil
	}
	sum := mat.NewSymDense(m.Cov[s].SymmetricDim(), nil)
	sum.CopySym(m.Cov[s])
	for i := range sum.SymmetricDim() {
		sum.SetSym(i, i, sum.At(i, i)+lambda)
	}
	var c mat.Cholesky
	if !c.Factorize(sum) {
		return nil
	}
	return &c
}

// scale returns the mean eigenvalue of a side's covariance, the unit of shrinkage.
func (m *Moments) scale(s Side) float64 {
	return mat.Trace(m.Cov[s]) / float64(m.Cov[s].SymmetricDim())
}

// white returns W (D, R) with W^T (Cov + lambda) W = I.
func (m *Moments) white(s Side, lambda float64) (*mat.Dense, error) {
	if c := m.shrunk(s, lambda); c != nil {
		var upper, inverse mat.TriDense // of U^T U
		c.UTo(&upper)
		if err := inverse.InverseTri(&upper); err != nil {
			return nil, fmt.Errorf("align: whitening the %ss: %w", s, err)
		}
		return mat.DenseCopyOf(&inverse), nil
	}
	spectrum, err := m.spectrum(s)
	if err != nil {
		return nil, err
	}
	return spectrum.scaled(lambda, -.5), nil
}

// regression returns (Cov + lambda)^-1 times the covariance of a side with the other, (D, E).
func (m *Moments) regression(s Side, lambda float64) (*mat.Dense, error) {
	if c := m.shrunk(s, lambda); c != nil {
		var out mat.Dense
		if err := c.SolveTo(&out, m.cross(s)); err != nil {
			return nil, fmt.Errorf("align: ridge from the %ss: %w", s, err)
		}
		return &out, nil
	}
	spectrum, err := m.spectrum(s)
	if err != nil {
		return nil, err
	}
	return spectrum.ridgeInverse(lambda, m.cross(s)), nil
}
