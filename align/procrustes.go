package align

import (
	"github.com/geoalign/geoalign/compute"
	"gonum.org/v1/gonum/mat"
)

// Procrustes is the orthogonal map of images that brings them nearest to their texts
// (Schoenemann 1966; a baseline of GeRA): with X^T Y = U S V^T,
//
//	R = argmin |X R - Y|_F, R^T R = I,  R = U V^T
//
// Where the widths differ, the narrower side gets columns of zeros.
type Procrustes struct {
	Prepare `toml:"-"`
	// no reflections
	RotationOnly bool `toml:"rotation_only" fixed:"run"`
	Scale        bool `toml:"-"` // also the best factor, trace(S)/|X|_F^2, on images; cosines do not see it
}

var _ momentMethod = Procrustes{}

// Fit implements Method. The map is a *Linear.
func (o Procrustes) Fit(e *compute.Engine, p Pairs) (Map, error) { return fitMoments(e, p, o) }

func (o Procrustes) prepare() Prepare { return o.Prepare }

func (o Procrustes) fit(_ *compute.Engine, _ Pairs, m *Moments) (Map, error) {
	d, t := m.Cross.Dims()
	rotation, sum, err := orthogonal(m.Cross, o.RotationOnly)
	if err != nil {
		return nil, err
	}
	w := max(d, t)
	if o.Scale {
		rotation.Scale(sum/mat.Trace(m.Cov[Image]), rotation)
	}
	pad := mat.NewDense(t, w, nil)
	for i := range t {
		pad.Set(i, i, 1)
	}
	return newLinear(m, rotation.Slice(0, d, 0, w), pad), nil
}

// orthogonal returns the orthogonal matrix (W, W) nearest to cross (D, E), W = max(D, E), and
// the sum of its singular values.
func orthogonal(cross *mat.Dense, rotationOnly bool) (*mat.Dense, float64, error) {
	d, t := cross.Dims()
	w := max(d, t)
	padded := mat.NewDense(w, w, nil)
	padded.Slice(0, d, 0, t).(*mat.Dense).Copy(cross)
	var svd mat.SVD
	if !svd.Factorize(padded, mat.SVDFull) {
		return nil, 0, errSVD
	}
	var u, v, r mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	r.Mul(&u, v.T())
	if rotationOnly && mat.Det(&r) < 0 { // the cheapest flip is that of the least singular value
		for i := range w {
			u.Set(i, w-1, -u.At(i, w-1))
		}
		r.Mul(&u, v.T())
	}
	var sum float64
	for _, s := range svd.Values(nil) {
		sum += s
	}
	return &r, sum, nil
}
