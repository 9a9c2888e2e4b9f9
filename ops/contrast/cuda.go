package contrast

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// sumsText comes before each source of this package.
//
//go:embed sums.cuh
var sumsText string

// source is a source of this package.
func source(name, text string) cuda.Source {
	return cuda.Source{Name: name, Text: sumsText + "\n" + text}
}

// steps are those of an op for devices, see op.Op.On.
type steps = map[string]func(c *exec.DeviceCall) (exec.Step, error)

// onCUDA names the step of an op for the CUDA device.
func onCUDA(prepare func(c *exec.DeviceCall) (exec.Step, error)) steps {
	return steps{cuda.Name: prepare}
}

// launches is the step of one kernel, whose parameters args gives when it runs.
func launches(s *cuda.Source, name string, grid func(c *exec.DeviceCall) cuda.Grid, args func(c *exec.DeviceCall) []any) steps {
	return onCUDA(func(c *exec.DeviceCall) (exec.Step, error) {
		k, g := cuda.Load(c, s, name), grid(c)
		return func() error { return k.Launch(g, args(c)...) }, nil
	})
}

// oneBlock is the grid of a kernel that puts rows together.
func oneBlock(*exec.DeviceCall) cuda.Grid { return cuda.Grid{Threads: 1024} }

// eachElement is the grid of a kernel with a thread for each element of the result.
func eachElement(c *exec.DeviceCall) cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(c.Out.Shape.TotalSize(), 256), Threads: 256}
}

// operand returns operand k, nil for a negative one.
func operand(c *exec.DeviceCall, k int) any {
	if k < 0 {
		return nil
	}
	return c.In[k]
}
