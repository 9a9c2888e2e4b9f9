package align

import (
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/state"
)

// Map is a fitted alignment. As a state.Part it is saved and restored under the name
// "alignment": restore into the zero value of its type.
type Map interface {
	state.Part
	// Width returns C.
	Width() int
	// RowWidth returns D or E, the width of the rows of a side.
	RowWidth(s Side) int
	// Apply maps rows (n, D) of a side to rows (n, C) of the shared space, of unit length,
	// which are compared by their product. A row of which the map leaves nothing, such as
	// the mean of the pairs, becomes zeros. It fails on rows of another width and on numbers
	// that are not finite.
	Apply(e *compute.Engine, s Side, rows []float32) ([]float32, error)
}

// Method fits a map to pairs.
type Method interface {
	Fit(e *compute.Engine, p Pairs) (Map, error)
}

// momentMethod is a method that begins with the moments of the pairs, which several settings
// of it can share.
type momentMethod interface {
	Method
	prepare() Prepare
	fit(e *compute.Engine, p Pairs, m *Moments) (Map, error)
}

// fitMoments is Fit of a momentMethod.
func fitMoments(e *compute.Engine, p Pairs, method momentMethod) (Map, error) {
	m, err := Measure(e, p, method.prepare())
	if err != nil {
		return nil, err
	}
	return method.fit(e, p, m)
}
