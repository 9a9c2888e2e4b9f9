package align

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// noise is the share of the largest variance below which a direction is rounding.
const noise = 1e-6

// spectrum is the eigendecomposition of a covariance without directions of noise.
type spectrum struct {
	values  []float64  // (R), falling
	vectors *mat.Dense // (D, R)
}

// errEigen is what gonum tells of an eigendecomposition that fails.
var errEigen = errors.New("align: the eigenvalues of the covariance do not converge: look for rows of extreme size")

// errSVD is the same of a singular value decomposition.
var errSVD = errors.New("align: the singular values do not converge: look for rows of extreme size")

// spectrum returns the decomposition of a side's covariance, which is kept.
func (m *Moments) spectrum(s Side) (*spectrum, error) {
	if m.spectra[s] == nil {
		var err error
		if few := m.few[s]; few != nil {
			m.spectra[s], err = decomposeFew(few, m.Count)
		} else {
			m.spectra[s], err = decompose(m.Cov[s])
		}
		if err != nil {
			return nil, err
		}
	}
	return m.spectra[s], nil
}

// decompose returns the eigendecomposition of a covariance.
func decompose(cov *mat.SymDense) (*spectrum, error) {
	d := cov.SymmetricDim()
	var eigen mat.EigenSym
	if !eigen.Factorize(cov, true) {
		return nil, errEigen
	}
	rising := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	r := 0
	for r < d && rising[d-1-r] > noise*rising[d-1] {
		r++
	}
	s := &spectrum{values: make([]float64, r), vectors: mat.NewDense(d, r, nil)}
	for k := range r {
		s.values[k] = rising[d-1-k]
		s.vectors.SetCol(k, mat.Col(nil, d-1-k, &vectors))
	}
	return s, nil
}

// decomposeFew is decompose for the covariance of n rows X (n, D), n < D, from the smaller
// X X^T: with X X^T/n = U S U^T the vectors are X^T U (n S)^-1/2.
func decomposeFew(rows []float32, n int) (*spectrum, error) {
	d := len(rows) / n
	x := mat.NewDense(n, d, nil)
	for i, v := range rows {
		x.Set(i/d, i%d, float64(v))
	}
	var gram mat.SymDense
	gram.SymOuterK(1/float64(n), x)
	s, err := decompose(&gram)
	if err != nil {
		return nil, err
	}
	var vectors mat.Dense
	vectors.Mul(x.T(), s.vectors)
	for k, v := range s.values {
		column := vectors.Slice(0, d, k, k+1).(*mat.Dense)
		column.Scale(1/math.Sqrt(float64(n)*v), column)
	}
	return &spectrum{values: s.values, vectors: &vectors}, nil
}

// scaled returns the eigenvectors with column k times (value_k + shrinkage)^power, (D, R):
// with the power -1/2, rows times it are white.
func (s *spectrum) scaled(shrinkage, power float64) *mat.Dense {
	var out mat.Dense
	out.Apply(func(_, k int, v float64) float64 { return v * math.Pow(s.values[k]+shrinkage, power) }, s.vectors)
	return &out
}

// ridgeInverse returns (Cov + lambda)^-1 B on the directions of the spectrum, (D, E).
func (s *spectrum) ridgeInverse(lambda float64, b mat.Matrix) *mat.Dense {
	var half, out mat.Dense
	half.Mul(s.scaled(lambda, -1).T(), b)
	out.Mul(s.vectors, &half)
	return &out
}
