package cuda

import "github.com/geoalign/geoalign/internal/exec"

// Steps is op.Op.On of an op with a step for this device.
type Steps = map[string]exec.DeviceStep

// Step enqueues the work of an op. What goes wrong first is kept until it ends: nothing is enqueued behind it.
type Step = func()

// Prepare makes the step of an op, nil for one that is left to the host.
type Prepare = func(c *exec.DeviceCall) (Step, error)

// On names the step of an op for this device.
func On(prepare Prepare) Steps { return OnWith(exec.Half{}, prepare) }

// OnWith is On for a step that does more with bfloat16 than the op on the host.
func OnWith(h exec.Half, prepare Prepare) Steps {
	return Steps{Name: {Half: h, Prepare: func(c *exec.DeviceCall) (exec.Step, error) {
		step, err := prepare(c)
		if step == nil || err != nil {
			return nil, err
		}
		return func() error {
			step()
			return Of(c).took()
		}, nil
	}}}
}

// OnKernel is On for a step that launches one kernel, whose parameters args returns when the step runs.
func OnKernel(s *Source, name string, grid func(c *exec.DeviceCall) Grid, args func(c *exec.DeviceCall) []any) Steps {
	return On(func(c *exec.DeviceCall) (Step, error) {
		k, g := Load(c, s, name), grid(c)
		return func() { k.Enqueue(g, args(c)...) }, nil
	})
}

// Enqueue is Launch in a step.
func (k *Kernel) Enqueue(g Grid, args ...any) {
	if k.device.failed == nil {
		k.device.failed = k.Launch(g, args...)
	}
}

// Note keeps what has gone wrong in a step, if anything has.
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
