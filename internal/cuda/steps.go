package cuda

import "github.com/geoalign/geoalign/internal/exec"

// Steps is op.Op.On of an op with a step for this device.
type Steps = map[string]exec.DeviceStep

// On names the step of an op for this device.
func On(prepare exec.Prepare) Steps { return OnWith(exec.Half{}, prepare) }

// OnWith is On for a step that does more with bfloat16 than the op on the host.
func OnWith(h exec.Half, prepare exec.Prepare) Steps {
	return Steps{Name: {Prepare: prepare, Half: h}}
}

// OnKernel is On for a step that launches one kernel, whose parameters args returns when the step runs.
func OnKernel(s *Source, name string, grid func(c *exec.DeviceCall) Grid, args func(c *exec.DeviceCall) []any) Steps {
	return On(func(c *exec.DeviceCall) (exec.Step, error) {
		k, g := Load(c, s, name), grid(c)
		return func() error { return k.Launch(g, args(c)...) }, nil
	})
}

// Optional returns operand i as a parameter of a kernel, the null pointer for a negative one. It is called when a step runs.
func Optional(c *exec.DeviceCall, i int) any {
	if i < 0 {
		return nil
	}
	return c.In[i]
}

// Each is the grid of a kernel with a thread for each of n values.
func Each(n int) Grid { return Grid{X: Blocks(n, 256), Threads: 256} }

// FloatsAt are rows of ld floats in scratch memory.
func FloatsAt(at Pointer, ld int) Matrix { return Matrix{At: at, LD: ld} }
