package conv

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

//go:embed places.cu
var placesText string

var placesSource = cuda.Source{Name: "places", Text: placesText}

func (g Geometry) maxPoolOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	k := cuda.Load(c, &placesSource, "max_pool")
	n := c.Out.Shape.TotalSize()
	return func() error {
		return k.Launch(threads(n), c.Out, c.Aux[0], c.In[0], int64(n), g.Height, g.Width, c.Out.Shape[1], g.OutHeight(), g.OutWidth(),
			g.Kernel, g.Stride, g.Pad)
	}, nil
}

func (g Geometry) maxPoolGradOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	k := cuda.Load(c, &placesSource, "max_pool_dx")
	n := c.Out.Shape.TotalSize()
	return func() error {
		return k.Launch(threads(n), c.Out, c.InAux[0][0], c.In[1], int64(n), g.Height, g.Width, c.Out.Shape[1], g.OutHeight(), g.OutWidth(),
			g.Kernel, g.Stride, g.Pad)
	}, nil
}

// planesOnCUDA is one of the ways between rows of places and planes of images of shape s, nil: that of the operand.
func planesOnCUDA(name string, s tensor.Shape) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		images := s
		if images == nil {
			images = c.In[0].Shape
		}
		k := cuda.Load(c, &placesSource, name)
		n := c.Out.Shape.TotalSize()
		return func() error {
			return k.Launch(threads(n), c.Out, c.In[0], int64(n), images[1], images[2]*images[3])
		}, nil
	}
}
