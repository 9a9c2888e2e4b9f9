package exec

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// fill copies the value of a constant.
func fill(a Array, v gorgonia.Value) error {
	switch d := v.Data().(type) {
	case float32:
		a.F32[0] = d
	case []float32:
		copy(a.F32, d)
	case int32:
		a.I32[0] = d
	case []int32:
		copy(a.I32, d)
	default:
		return fmt.Errorf("unsupported value %T", d)
	}
	return nil
}
