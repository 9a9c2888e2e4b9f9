package cuda

import "github.com/geoalign/geoalign/internal/exec"

var _ exec.Adder = (*Device)(nil)

// PrepareAdd implements exec.Adder. The result may lie where an operand does.
func (d *Device) PrepareAdd(c *exec.DeviceCall) (exec.Step, error) {
	n := c.Out.Shape.TotalSize()
	for _, x := range []exec.Operand{c.In[0], c.In[1], c.Out} {
		if x.Type != exec.Float32 || x.Shape.TotalSize() != n {
			return nil, nil // a scalar beside an array, say: on the host
		}
	}
	k := d.Kernel(&basicSource, "sum")
	return func() error {
		return k.Launch(Grid{X: Blocks(n, 1024), Threads: 256}, c.Out, c.In[0], c.In[1], int64(n))
	}, nil
}
