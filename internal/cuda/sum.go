package cuda

import "github.com/geoalign/geoalign/internal/exec"

var (
	_ exec.Adder   = (*Device)(nil)
	_ exec.Rounder = (*Device)(nil)
)

// PrepareRound implements exec.Rounder.
func (d *Device) PrepareRound(c *exec.DeviceCall) (exec.Step, error) {
	x := c.In[0]
	rows, cols := 1, x.Shape.TotalSize()
	if n := len(x.Shape); n > 0 && x.Shape[n-1]%rowAlign == 0 {
		rows, cols = cols/x.Shape[n-1], x.Shape[n-1]
	}
	if cols%rowAlign != 0 {
		return func() error { return d.Round(At(c.Out), At(x), rows*cols) }, nil
	}
	wide := 4
	if At(x)%16 != 0 {
		wide = 1
	}
	k := d.Kernel(&productSource, "place_rows", Type("FROM", x), Type("TO", c.Out), Value("WIDE", wide))
	return func() error {
		return k.Launch(Grid{X: Blocks(rows*cols/rowAlign, 256), Threads: 256}, c.Out, x, nil, rows, cols, cols,
			int64(cols))
	}, nil
}

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
