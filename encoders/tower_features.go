package encoders

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/nn"
)

// FeatureTower is the identity: rows of a frozen encoder, which are one class token each. With
// Center it is
//
//	y = (x - mean) / |x - mean|
//
// whose -mean is kept among the parameters as shift, which no step changes.
type FeatureTower struct {
	Column string // name of the column
	Dim    int    // D
	Center bool
	Mean   []float32 // (D) of a fresh tower that centres; nil: zeros
}

var _ Tower = FeatureTower{}

// centerEps is the least length that a centred row is divided by.
const centerEps = 1e-12

// shift starts at -mean.
func (t FeatureTower) shift() Init {
	return func(_ *rand.Rand, dst []float32) {
		for i, m := range t.Mean {
			dst[i] = -m
		}
	}
}

// Columns is the feature row, (D).
func (t FeatureTower) Columns() []batch.Column {
	return []batch.Column{{Name: t.Column, Shape: []int{t.Dim}}}
}

// Classes returns 1.
func (t FeatureTower) Classes() int { return 1 }

// Shape returns the tokens of a row and their width.
func (t FeatureTower) Shape() (length, width int) { return 1, t.Dim }

// Encode returns the rows (R, D) as they are, or centred.
func (t FeatureTower) Encode(_ *Context, s Scope, in Inputs, want Want) Sequence {
	x := in[t.Column]
	columns("features", x)
	if t.Center {
		if t.Mean != nil && len(t.Mean) != t.Dim {
			misuse("features", x, "the mean must have %d values (got %d)", t.Dim, len(t.Mean))
		}
		shift := s.As(Traits{Frozen: true, Given: true}).Param("shift", t.shift(), 1, t.Dim)
		x = nn.L2Normalize(nn.AddPositions(x, shift, 1), centerEps) // (R, D)
	}
	return Sequence{Tokens: x, Classes: x, Len: 1, Width: t.Dim}
}
