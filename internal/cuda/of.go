package cuda

import "github.com/geoalign/geoalign/internal/exec"

// Of returns the device that a step is prepared for.
func Of(c *exec.DeviceCall) *Device { return of(c) }

// At returns where an operand lies. Buffers of inputs may be exchanged between runs: a step asks when it runs.
func At(o exec.Operand) Pointer { return o.Buffer.(*Buffer).at }
