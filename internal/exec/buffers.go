package exec

import (
	"fmt"
	"unsafe"

	"gorgonia.org/gorgonia"
)

// array returns the view of a computed result.
func (m *Machine) array(r result) Array {
	u := m.plan.units[r.unit]
	n := r.shape.TotalSize()
	if u.half {
		n = halfSize(n)
	}
	mem := u.external
	if mem == nil {
		mem = m.arena[u.offset : u.offset+n : u.offset+n]
	}
	if r.ints {
		return Array{Shape: r.shape, I32: asInts(mem)}
	}
	if u.half {
		return Array{Shape: r.shape, BF16: asHalves(mem, r.shape.TotalSize())}
	}
	return Array{Shape: r.shape, F32: mem}
}

func asInts(f []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

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
