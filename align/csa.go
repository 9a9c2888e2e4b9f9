package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/state"
)

// CSA is canonical similarity analysis (Li, Chinchali and Topcu, ICLR 2025): CCA whose first K
// coordinates u and v of an image and a text are compared by
//
//	score = sum_k rho_k u_k v_k / (|u| |v|)
//
// with the correlations rho as weights of a cosine whose lengths do not know them. Rows of
// the map are sqrt(rho) u/|u|, with one further coordinate for each side that brings
// them to unit length and meets zeros of the other side, so that their product is the score.
type CSA struct {
	Prepare `toml:"-"`
	// as model.align.cca.shrinkage
	Lambda float64 `toml:"shrinkage" fixed:"run" max:"1000000"`
	// canonical components that the similarity sums over; 0: all
	Components int `toml:"components" fixed:"run" max:"1048576"`
}

// Check implements section.Checked.
func (o *CSA) Check(k *section.Checker) { k.NotNegative("shrinkage", "components") }

var _ momentMethod = CSA{}

// Fit implements Method. The map is a *CSAMap.
func (o CSA) Fit(e *compute.Engine, p Pairs) (Map, error) { return fitMoments(e, p, o) }

func (o CSA) prepare() Prepare { return o.Prepare }

func (o CSA) fit(_ *compute.Engine, _ Pairs, m *Moments) (Map, error) {
	c, err := CCA{Lambda: o.Lambda, Components: o.Components}.canonical(m)
	if err != nil {
		return nil, err
	}
	out := &CSAMap{Linear: *newLinear(m, c.maps[Image], c.maps[Text])}
	for _, rho := range c.correlations {
		out.correlations = append(out.correlations, float32(min(rho, 1)))
	}
	return out, nil
}

// CSAMap is the fitted map of CSA: the linear layers of Linear are unweighted canonical
// coordinates (K), what follows is not a layer.
type CSAMap struct {
	Linear
	correlations []float32 // (K)
}

var _ Map = (*CSAMap)(nil)

// Correlations returns rho (K), falling. It is the map's own.
func (c *CSAMap) Correlations() []float32 { return c.correlations }

// Width returns K+2.
func (c *CSAMap) Width() int { return c.Linear.Width() + 2 }

// Apply implements Map.
func (c *CSAMap) Apply(e *compute.Engine, s Side, rows []float32) ([]float32, error) {
	u, err := c.project(e, s, rows)
	if err != nil {
		return nil, err
	}
	k, w := c.Linear.Width(), c.Width()
	n := len(u) / k
	out := make([]float32, n*w)
	for i := range n {
		row, to := u[i*k:][:k], out[i*w:][:w]
		unit(row)
		for j, v := range row {
			to[j] = v * float32(math.Sqrt(float64(c.correlations[j])))
		}
		if vector.SumSq(row) > 0 {
			to[k+int(s)] = float32(math.Sqrt(max(0, 1-vector.SumSq(to))))
		}
	}
	return out, nil
}

// CheckCounters implements state.Checker.
func (c *CSAMap) CheckCounters() error {
	if err := c.Linear.CheckCounters(); err != nil {
		return err
	}
	if len(c.shape.Parts) != 1 {
		return fmt.Errorf("align: a map of CSA has one part (got %d)", len(c.shape.Parts))
	}
	return nil
}

// Tensors implements state.Part.
func (c *CSAMap) Tensors() []state.Tensor {
	out := c.Linear.Tensors()
	if k := c.Linear.Width(); len(c.correlations) != k {
		c.correlations = make([]float32, k)
	}
	return append(out, state.Tensor{Name: "correlations", Shape: []int{len(c.correlations)}, Data: c.correlations})
}
