package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config/section"
	"gonum.org/v1/gonum/mat"
)

// CCA is canonical correlation analysis with shrunk covariances (Hotelling 1936, Vinod 1976).
// Both sides are whitened and turned to the singular vectors of what is between them,
//
//	(Cxx + l)^-1/2 Cxy (Cyy + l)^-1/2 = U S V^T
//	image: S^power U^T (Cxx + l)^-1/2 x,  text: S^power V^T (Cyy + l)^-1/2 y
//
// A coordinate counts by its correlation to the power of 2*Power in the products, so that
// directions that the sides do not share fade out without a number of components to choose.
type CCA struct {
	Prepare `toml:"-"`
	// added to the covariance of each side, in units of its mean eigenvalue; 0: 30/sqrt(N) for N pairs
	//
	// That was near the best at 50 to 30,000 pairs of two sets of features.
	Lambda float64 `toml:"shrinkage" fixed:"run" max:"1000000"`
	// canonical components, those of the largest correlations; 0: all
	Components int `toml:"components" fixed:"run" max:"1048576"`
	// a component is scaled by its correlation to this power; 0: all count alike
	//
	// Here 0 is 1, unless Unweighted says that all count alike.
	Power      float64 `toml:"power" fixed:"run" max:"64"`
	Unweighted bool    `toml:"-"` // power 0
}

// Defaults implements section.Defaulter.
func (o *CCA) Defaults() { *o = CCA{Power: 1} }

// Check implements section.Checked.
func (o *CCA) Check(k *section.Checker) { k.NotNegative("shrinkage", "components", "power") }

var _ momentMethod = CCA{}

// Fit implements Method. The map is a *Linear.
func (o CCA) Fit(e *compute.Engine, p Pairs) (Map, error) { return fitMoments(e, p, o) }

func (o CCA) prepare() Prepare { return o.Prepare }

func (o CCA) fit(_ *compute.Engine, _ Pairs, m *Moments) (Map, error) {
	power := o.Power
	switch {
	case o.Unweighted && o.Power != 0:
		return nil, fmt.Errorf("align: CCA.Unweighted and CCA.Power = %v exclude each other: set one", o.Power)
	case !(o.Power >= 0) || math.IsInf(o.Power, 0):
		return nil, fmt.Errorf("align: CCA.Power must be a number >= 0 (got %v)", o.Power)
	case o.Power == 0 && !o.Unweighted:
		power = 1
	}
	c, err := o.canonical(m)
	if err != nil {
		return nil, err
	}
	for k, s := range c.correlations {
		for _, w := range c.maps {
			d, _ := w.Dims()
			column := w.Slice(0, d, k, k+1).(*mat.Dense)
			column.Scale(math.Pow(s, power), column)
		}
	}
	return newLinear(m, c.maps[Image], c.maps[Text]), nil
}

// canonical is the coordinates of CCA.
type canonical struct {
	maps         [2]*mat.Dense // (D, K) and (E, K)
	correlations []float64     // (K), falling
}

// canonical returns the first components.
func (o CCA) canonical(m *Moments) (*canonical, error) {
	if err := checkPenalty("CCA.Lambda", o.Lambda); err != nil {
		return nil, err
	}
	lambda := o.Lambda
	if lambda == 0 {
		lambda = 30 / math.Sqrt(float64(m.Count))
	}
	var white [2]*mat.Dense // (D, R) and (E, R)
	for s := range white {
		var err error
		if white[s], err = m.white(Side(s), lambda*m.scale(Side(s))); err != nil {
			return nil, err
		}
	}
	var half, between mat.Dense
	half.Mul(white[Image].T(), m.Cross)
	between.Mul(&half, white[Text])
	var svd mat.SVD
	if !svd.Factorize(&between, mat.SVDThin) {
		return nil, errSVD
	}
	c := &canonical{correlations: svd.Values(nil)}
	k := len(c.correlations)
	for k > 1 && c.correlations[k-1] <= noise*c.correlations[0] {
		k--
	}
	switch {
	case o.Components < 0 || o.Components > len(c.correlations):
		return nil, fmt.Errorf("align: Components must be at most %d, the rank of %d pairs of %d and %d columns (got %d): lower it, or 0 for all", len(c.correlations), m.Count, len(m.Mean[Image]), len(m.Mean[Text]), o.Components)
	case o.Components > 0:
		k = min(k, o.Components)
	}
	c.correlations = c.correlations[:k]
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	for s, x := range []*mat.Dense{&u, &v} {
		r, _ := x.Dims()
		c.maps[s] = new(mat.Dense)
		c.maps[s].Mul(white[s], x.Slice(0, r, 0, k))
	}
	return c, nil
}
