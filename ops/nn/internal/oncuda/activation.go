package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// activationSource has the activations, by the numbers of vector.Activation and those that follow.
var activationSource = cuda.NewSource(files, "activation", "activation.cu")

// Activations that no product is followed by.
const (
	ReLU = vector.BySiLU + 1 + iota
	Tanh
)

// activationThreads is how many threads a block has, each for 16 values.
const activationThreads = 256

func activationGrid(values int) cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(values, 16*activationThreads), Threads: activationThreads}
}

// activationMacros define an activation whose result is y: by faster approximations where that is rounded to bfloat16.
func activationMacros(of vector.Activation, y *exec.Operand, more ...cuda.Macro) []cuda.Macro {
	return append(more, cuda.Value("F", int(of)), cuda.Type("Y", *y), cuda.Is("FAST", y.Type == exec.BFloat16))
}

// activate returns the step of y = activation(x), values one by one, which may lie at the same place.
func activate(c *exec.DeviceCall, of vector.Activation, y, x *exec.Operand) cuda.Step {
	k := cuda.Load(c, activationSource, "activate", activationMacros(of, y, cuda.Type("X", *x))...)
	n := y.Shape.TotalSize()
	return func() { k.Enqueue(activationGrid(n), *y, *x, int64(n)) }
}

// activateGradient returns the step of dx = dy times the derivative of the activation at x, which all may lie at the
// same place.
func activateGradient(c *exec.DeviceCall, of vector.Activation, dx, x, dy *exec.Operand) cuda.Step {
	k := cuda.Load(c, activationSource, "activate_gradient",
		activationMacros(of, dx, cuda.Type("X", *x), cuda.Type("DY", *dy))...)
	n := dx.Shape.TotalSize()
	return func() { k.Enqueue(activationGrid(n), *dx, *x, *dy, int64(n)) }
}

// Activation is the step of an op that is an activation.
func Activation(of vector.Activation) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return activate(c, of, &c.Out, &c.In[0]) })
}

// ActivationGrad is the step of its gradient for x, or the result of relu and tanh, and dy.
func ActivationGrad(of vector.Activation) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return activateGradient(c, of, &c.Out, &c.In[0], &c.In[1]) })
}

// Gated is the step of SwiGLU, and of its gradient.
func Gated(kernel string) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, h, wide := c.In[0].Shape[0], c.In[0].Shape[1]/2, 4
		for h%wide != 0 {
			wide /= 2
		}
		k := cuda.Load(c, activationSource, kernel, cuda.Value("F", int(vector.BySiLU)), cuda.Is("HALVES", true),
			cuda.Value("WIDE", wide))
		g := cuda.Grid{X: rows, Y: cuda.Blocks(h/wide, activationThreads), Threads: activationThreads}
		return func() {
			args := []any{c.Out}
			for _, x := range c.In {
				args = append(args, x)
			}
			k.Enqueue(g, append(args, h)...)
		}
	})
}

// GELUDropout is the step of GELU with dropout behind it.
func GELUDropout(keep float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[0])
		k := cuda.Load(c, activationSource, "activate",
			activationMacros(vector.ByGELU, &c.Out, cuda.Type("X", c.In[0]), cuda.Is("DROPPED", true))...)
		return func() { k.Enqueue(activationGrid(rows*cols), c.Out, c.In[0], int64(rows*cols), c.In[1], cols, 1/keep) }
	})
}

// GELUDropoutGrad is that of its gradient, for x, bits and dy.
func GELUDropoutGrad(keep float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[0])
		k := cuda.Load(c, activationSource, "activate_gradient",
			activationMacros(vector.ByGELU, &c.Out, cuda.Type("X", c.In[0]), cuda.Type("DY", c.In[2]),
				cuda.Is("DROPPED", true))...)
		return func() {
			k.Enqueue(activationGrid(rows*cols), c.Out, c.In[0], c.In[2], int64(rows*cols), c.In[1], cols, 1/keep)
		}
	})
}
