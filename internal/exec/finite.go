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

// Error names the op and what was wrong with its result.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("exec: %s made %v at element %d of %v", e.Op, e.Value, e.Index, e.Shape)
}

func checkFinite(in *instruction) error {
	if err := in.finite(in.out); err != nil {
		return err
	}
	for _, b := range in.exposed {
		if err := in.finite(b); err != nil {
			return err
		}
	}
	return nil
}

func (in *instruction) finite(b Buffer) error {
	if err := b.Fetch(); err != nil {
		return err
	}
	a := b.Host()
	for i, v := range a.F32 {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return &NonFiniteError{Op: in.node.Op().String(), Shape: a.Shape, Index: i, Value: v}
		}
	}
	for i, h := range a.BF16 {
		if h&0x7f80 == 0x7f80 {
			return &NonFiniteError{Op: in.node.Op().String(), Shape: a.Shape, Index: i,
				Value: math.Float32frombits(uint32(h) << 16)}
		}
	}
	return nil
}
