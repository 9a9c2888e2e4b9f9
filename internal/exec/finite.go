package exec

import (
	"fmt"
	"math"
)

// NonFiniteError names the op that first made a NaN or an infinity.
type NonFiniteError struct {
	Op    string
	Shape []int
	Index int // first bad element, flat
	Value float32
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("exec: %s made %v at element %d of %v", e.Op, e.Value, e.Index, e.Shape)
}

func checkFinite(in *instruction) error {
	for i, v := range in.call.Out.F32 {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return &NonFiniteError{Op: in.node.Op().String(), Shape: in.call.Out.Shape, Index: i, Value: v}
		}
	}
	return nil
}
