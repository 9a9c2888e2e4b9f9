package cuda

import "github.com/geoalign/geoalign/internal/exec"

// Steps is op.Op.On of an op with a step for this device.
type Steps = map[string]exec.DeviceStep

// Step enqueues the work of an op.
type Step = func()

// Prepare makes the step of an op, nil for one that is left to the host. What goes wrong first in it, or in a step,
// Device.Note keeps until it ends: nothing is enqueued behind it.
type Prepare = func(c *exec.DeviceCall) Step

// On names the step of an op for this device.
func On(prepare Prepare) Steps { return OnWith(exec.Half{}, prepare) }

// OnWith is On for a step that does more with bfloat16 than the op on the host.
func OnWith(h exec.Half, prepare Prepare) Steps {
	return Steps{Name: {Half: h, Prepare: func(c *exec.DeviceCall) (exec.Step, error) {
		d, step := Of(c), prepare(c)
		if err := d.took(); step == nil || err != nil {
			return nil, err
		}
		return func() error {
			step()
			return d.took()
		}, nil
	}}}
}

// OnKernel is On for a step that launches one kernel, whose parameters args returns when the step runs.
func OnKernel(s *Source, name string, grid func(c *exec.DeviceCall) Grid, args func(c *exec.DeviceCall) []any) Steps {
	return On(func(c *exec.DeviceCall) Step {
		k, g := Load(c, s, name), grid(c)
		return func() { k.Enqueue(g, args(c)...) }
	})
}

// Enqueue is Launch in a step.
func (k *Kernel) Enqueue(g Grid, args ...any) {
	if k.device.failed == nil {
		k.device.failed = k.Launch(g, args...)
	}
}

// clear is zero in a step.
func (d *Device) clear(at Pointer, bytes int64) {
	if d.failed == nil {
		d.failed = d.zero(at, bytes)
	}
}

// Note keeps what has gone wrong where a step is prepared or runs, if anything has.
func (d *Device) Note(err error) {
	if d.failed == nil {
		d.failed = err
	}
}

// took returns what went wrong in the step that has ended.
func (d *Device) took() error {
	err := d.failed
	d.failed = nil
	return err
}

// Optional returns operand i as a parameter of a kernel, the null pointer for a negative one. It is called when a step
// runs.
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
