package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var intsSource = cuda.NewSource(files, "ints", "ints.cu")

// Ints is the step of a kernel whose parameters are the result, the operands, the number of results and these.
func Ints(name string, parameters ...int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return ints(c, c.In, name, parameters...) })
}

// OfLength is the step of a result that depends on the number of values alone: it reads no operand.
func OfLength(name string, parameters ...int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return ints(c, nil, name, parameters...) })
}

// GatherInts is the step of the values of operand 0 at the places of operand 1.
func GatherInts() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return ints(c, c.In, "gather_ints", c.In[0].Shape[0]) })
}

func ints(c *exec.DeviceCall, in []exec.Operand, name string, parameters ...int) cuda.Step {
	k, n := cuda.Load(c, intsSource, name), c.Out.Shape.TotalSize()
	return func() {
		args := []any{c.Out}
		for _, x := range in {
			args = append(args, x)
		}
		args = append(args, int64(n))
		for _, p := range parameters {
			args = append(args, p)
		}
		k.Enqueue(cuda.Each(n), args...)
	}
}

// ConcatInts joins four vectors with each launch.
func ConcatInts() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, intsSource, "concat_ints")
		return func() {
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
				k.Enqueue(cuda.Each(n), args...)
				at += n
			}
		}
	})
}
