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
	mem := u.external
	if mem == nil {
		mem = m.arena[u.offset : u.offset+n : u.offset+n]
	}
	if r.ints {
		return Array{Shape: r.shape, I32: asInts(mem)}
	}
	return Array{Shape: r.shape, F32: mem}
}

// alignedFloats returns n floats that start on a cache line.
func alignedFloats(n int) []float32 {
	if n == 0 {
		return nil
	}
	b := make([]float32, n+align)
	skip := 0
	if r := uintptr(unsafe.Pointer(&b[0])) % (4 * align); r != 0 {
		skip = int(4*align-r) / 4
	}
	return b[skip : skip+n : skip+n]
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
