package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var (
	layerNormSource     = cuda.NewSource(files, "layer norm", "rows.cuh", "layernorm.cu")
	layerNormGradSource = cuda.NewSource(files, "layer norm dx", "rows.cuh", "layernorm_dx.cu")
)

// Most threads of a row; longer rows than these hold are left to the host.
const (
	layerNormThreads     = 1024 // 32768 columns, of 4 at a time
	layerNormGradThreads = 256  // 8192: sums for gamma and beta take registers too
)

// shadowed says whether a result has a shadow.
func shadowed(o exec.Operand) cuda.Macro { return cuda.Is("SHADOW", o.Shadow != nil) }

// LayerNorm is the step of a layer norm.
func LayerNorm(eps float32) cuda.Steps {
	return cuda.OnWith(exec.Half{Shadows: []int{output}}, func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[0])
		l, ok := layoutOf(cols, layerNormThreads)
		if !ok {
			return nil
		}
		k := cuda.Load(c, layerNormSource, "layer_norm",
			l.macros(cuda.Type("Y", c.Out), shadowed(c.Out), cuda.Is("ADD", false))...)
		return func() {
			k.Enqueue(l.grid(rows), c.Out, cuda.ShadowOf(c.Out), c.In[0], c.In[1], c.In[2], c.Aux[0], c.Aux[1], rows,
				cols, eps)
		}
	})
}

// Auxiliary results of AddNorm, as its op has them.
const (
	addNormOut = iota
	addNormMean
	addNormRstd
)

// Normalised is the step of the normalised sum of AddNorm that is made again. Its memory is not worth that here.
func Normalised() cuda.Steps {
	steps := cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[0])
		l, ok := layoutOf(cols, layerNormThreads)
		if !ok {
			return nil
		}
		k := cuda.Load(c, layerNormSource, "normalise",
			l.macros(cuda.Type("Y", c.Out), shadowed(c.Out), cuda.Is("ADD", false))...)
		return func() {
			k.Enqueue(l.grid(rows), c.Out, cuda.ShadowOf(c.Out), c.In[0], c.In[1], c.In[2], c.InAux[0][addNormMean],
				c.InAux[0][addNormRstd], rows,
				cols)
		}
	})
	return cuda.Steps{cuda.Name: {Prepare: steps[cuda.Name].Prepare, Keeps: true}}
}

// AddNorm is the step of a sum, of which one part may be dropped out, and its layer norm.
func AddNorm(eps, keep float32, dropout bool) cuda.Steps {
	return cuda.OnWith(exec.Half{Shadows: []int{addNormOut}}, func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[0])
		l, ok := layoutOf(cols, layerNormThreads)
		if !ok {
			return nil
		}
		norm := c.Aux[addNormOut]
		macros := l.macros(cuda.Type("Y", norm), shadowed(norm), cuda.Type("H", c.In[0]), cuda.Is("ADD", true),
			cuda.Is("DROPOUT", dropout),
			cuda.Is("SUM", !c.Unread))
		k := cuda.Load(c, layerNormSource, "add_norm", macros...)
		scale := float32(1)
		if dropout {
			scale = 1 / keep
		}
		return func() {
			var bits any
			if dropout {
				bits = c.In[4]
			}
			k.Enqueue(l.grid(rows), c.Out, norm, cuda.ShadowOf(norm), c.In[0], c.In[1], bits, c.In[2], c.In[3],
				c.Aux[addNormMean], c.Aux[addNormRstd], rows, cols, eps, scale)
		}
	})
}

// LayerNormGrad are the places of the operands of a gradient of layer norm.
type LayerNormGrad struct {
	X, Gamma, DY int
	More         int // added to dx, or -1
	Of           int // operand whose auxiliary results the statistics are
	Mean, Rstd   int // their places
}

// Step is that of the gradient of the rows, and of gamma and beta as auxiliary results.
func (o LayerNormGrad) Step() cuda.Steps {
	return cuda.OnWith(exec.Half{Shadows: []int{output}}, func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[o.X])
		l, ok := layoutOf(cols, layerNormGradThreads)
		if !ok {
			return nil
		}
		g := l.grid(rows)
		// what runs at a time on a large device; fixed, so that sums are the same everywhere
		g.X = min(g.X, 3*132*128/g.Threads)
		if l.threads == 32 {
			g.Shared = 2 * cols * 4
		}
		parts := cuda.Scratch(c, int64(g.X)*2*int64(cols)*4)
		macros := l.macros(cuda.Type("DY", c.In[o.DY]), shadowed(c.Out), cuda.Is("MORE", o.More >= 0 || c.Accumulate))
		k := cuda.Load(c, layerNormGradSource, "layer_norm_dx", macros...)
		sum := cuda.Load(c, partSumsSource, "sum_parts")
		return func() {
			more := c.Out
			if o.More >= 0 {
				more = c.In[o.More]
			}
			statistics := c.InAux[o.Of]
			k.Enqueue(g, c.Out, cuda.ShadowOf(c.Out), parts, c.In[o.X], c.In[o.Gamma], c.In[o.DY], more,
				statistics[o.Mean],
				statistics[o.Rstd], rows, cols)
			sumParts(sum, c.Aux[0], c.Aux[1], parts, g.X, cols)
		}
	})
}
