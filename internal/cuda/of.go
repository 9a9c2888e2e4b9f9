package cuda

import "github.com/geoalign/geoalign/internal/exec"

// Of returns the device that a step is prepared for: that of its result.
func Of(c *exec.DeviceCall) *Device {
	if b, ok := c.Out.Buffer.(*Buffer); ok {
		return b.memory.device
	}
	panic("cuda: a step is prepared for results that lie elsewhere")
}

// ShadowOf returns the shadow of a result as an operand of a kernel, a null pointer where there is none.
func ShadowOf(o exec.Operand) exec.Operand {
	return exec.Operand{Spec: exec.Spec{Shape: o.Shape, Type: exec.BFloat16}, Buffer: o.Shadow}
}

// At returns where an operand lies. Buffers of inputs may be exchanged between runs: a step asks when it runs.
func At(o exec.Operand) Pointer { return o.Buffer.(*Buffer).at }
