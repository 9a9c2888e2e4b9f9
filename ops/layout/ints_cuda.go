package layout

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed ints.cu
var intsText string

var intsSource = cuda.Source{Name: "ints", Text: intsText}

// intsOnCUDA runs a kernel whose parameters are the result, the operands, the number of results and these.
func intsOnCUDA(name string, parameters ...int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		k, n := cuda.Load(c, &intsSource, name), c.Out.Shape.TotalSize()
		return func() error {
			args := []any{c.Out}
			for _, x := range c.In {
				args = append(args, x)
			}
			args = append(args, int64(n))
			for _, p := range parameters {
				args = append(args, p)
			}
			return k.Launch(cuda.Grid{X: cuda.Blocks(n, threads), Threads: threads}, args...)
		}, nil
	}
}

// ofLength makes the step of a result that depends on the number of values alone: it reads no operand.
func ofLength(name string, parameters ...int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		own := *c
		own.In = nil
		return intsOnCUDA(name, parameters...)(&own)
	}
}

func gatherIntsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	return intsOnCUDA("gather_ints", c.In[0].Shape[0])(c)
}

// concatIntsOnCUDA joins four vectors with each launch.
func concatIntsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	k := cuda.Load(c, &intsSource, "concat_ints")
	return func() error {
		at := 0
		for from := 0; from < len(c.In); from += 4 {
			args, n := []any{c.Out, int64(at)}, 0
			for i := from; i < from+4; i++ {
				if i >= len(c.In) {
					args = append(args, nil, int64(0))
					continue
				}
				size := c.In[i].Shape.TotalSize()
				args, n = append(args, c.In[i], int64(size)), n+size
			}
			if err := k.Launch(cuda.Grid{X: cuda.Blocks(n, threads), Threads: threads}, args...); err != nil {
				return err
			}
			at += n
		}
		return nil
	}, nil
}
