package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"gorgonia.org/tensor"
)

var placesSource = cuda.NewSource(files, "places", "places.cu")

// MaxPool is the step of the maxima of windows.
func MaxPool(g convolve.Sizes) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, placesSource, "max_pool")
		n := c.Out.Shape.TotalSize()
		return func() {
			k.Enqueue(cuda.Each(n), c.Out, c.Aux[0], c.In[0], int64(n), g.Height, g.Width, c.Out.Shape[1],
				g.OutHeight(), g.OutWidth(),
				g.Kernel, g.Stride, g.Pad)
		}
	})
}

// MaxPoolGrad is the step of its gradient.
func MaxPoolGrad(g convolve.Sizes) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, placesSource, "max_pool_dx")
		n := c.Out.Shape.TotalSize()
		return func() {
			k.Enqueue(cuda.Each(n), c.Out, c.InAux[0][0], c.In[1], int64(n), g.Height, g.Width, c.Out.Shape[1],
				g.OutHeight(), g.OutWidth(),
				g.Kernel, g.Stride, g.Pad)
		}
	})
}

// FromPlanes is the step from planes of images to rows of places.
func FromPlanes() cuda.Steps { return planes("from_planes", nil) }

// ToPlanes is the step from rows of places to planes of images of shape s.
func ToPlanes(s tensor.Shape) cuda.Steps { return planes("to_planes", s) }

// planes is one of the ways between rows of places and planes of images of shape s, nil: that of the operand.
func planes(name string, s tensor.Shape) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		images := s
		if images == nil {
			images = c.In[0].Shape
		}
		k := cuda.Load(c, placesSource, name)
		n := c.Out.Shape.TotalSize()
		return func() { k.Enqueue(cuda.Each(n), c.Out, c.In[0], int64(n), images[1], images[2]*images[3]) }
	})
}
