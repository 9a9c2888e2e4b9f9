package contrast

import (
	_ "embed"
	"math"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed scores.cu
var scoresText string

var scoresSource = source("scores", scoresText)

// doubles are parameters of kernels.
func doubles(x ...float64) (p []any) {
	for _, v := range x {
		p = append(p, math.Float64bits(v))
	}
	return p
}

// eachRow is the grid of a kernel of scores: a block for each row.
func eachRow(c *exec.DeviceCall) cuda.Grid { return cuda.Grid{X: c.In[0].Shape[0], Threads: 128} }

// operandsOnCUDA are the parameters that a loss reads: scores, what it has besides, and ids.
func (l pairLoss) operandsOnCUDA(c *exec.DeviceCall) []any {
	p := []any{c.In[0]}
	if l.scalar != "" {
		p = append(p, c.In[1])
	}
	return append(p, operand(c, l.ids))
}

func (l pairLoss) forwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	n := c.In[0].Shape[0]
	partial, err := cuda.Scratch(c, 8*int64(n))
	if err != nil {
		return nil, err
	}
	each, all := cuda.Load(c, &scoresSource, l.kind), cuda.Load(c, &scoresSource, "total")
	return func() error {
		args := append(append([]any{partial}, l.operandsOnCUDA(c)...), n)
		if err := each.Launch(eachRow(c), append(args, l.parameters...)...); err != nil {
			return err
		}
		return all.Launch(oneBlock(c), c.Out, partial, n)
	}, nil
}

func (l pairLoss) backwardOnCUDA(operands int) steps {
	return launches(&scoresSource, l.kind+"_ds", eachRow, func(c *exec.DeviceCall) []any {
		args := append(append([]any{c.Out}, l.operandsOnCUDA(c)...), c.In[operands], c.In[0].Shape[0])
		return append(args, l.parameters...)
	})
}

// sameIDs launches the kernel that the number of triplets is made of, for ids of n rows.
func sameIDs(c *exec.DeviceCall, n int) func(same cuda.Pointer, ids exec.Operand) error {
	k := cuda.Load(c, &scoresSource, "same_ids")
	return func(same cuda.Pointer, ids exec.Operand) error {
		return k.Launch(cuda.Grid{X: n, Threads: 128}, same, ids, n)
	}
}

func (t Triplets) forwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	n := c.In[0].Shape[0]
	partial, err := cuda.Scratch(c, 16*int64(n))
	if err != nil {
		return nil, err
	}
	same := partial + cuda.Pointer(8*n)
	count, each, mean := sameIDs(c, n), cuda.Load(c, &scoresSource, "triplet"), cuda.Load(c, &scoresSource, "triplet_mean")
	return func() error {
		if err := count(same, c.In[1]); err != nil {
			return err
		}
		if err := each.Launch(eachRow(c), partial, c.In[0], c.In[1], n, t.Hardest, t.Soft, math.Float64bits(t.Margin)); err != nil {
			return err
		}
		return mean.Launch(oneBlock(c), c.Out, partial, same, n, t.Hardest)
	}, nil
}

func (t Triplets) backwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	n := c.In[0].Shape[0]
	same, err := cuda.Scratch(c, 8*int64(n))
	if err != nil {
		return nil, err
	}
	count, each := sameIDs(c, n), cuda.Load(c, &scoresSource, "triplet_ds")
	return func() error {
		if err := count(same, c.In[1]); err != nil {
			return err
		}
		return each.Launch(eachRow(c), c.Out, c.In[0], c.In[1], c.In[2], same, n, t.Hardest, t.Soft, math.Float64bits(t.Margin))
	}, nil
}

func tripletAnchorsOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	n := c.In[0].Shape[0]
	same, err := cuda.Scratch(c, 8*int64(n))
	if err != nil {
		return nil, err
	}
	count, anchors := sameIDs(c, n), cuda.Load(c, &scoresSource, "triplet_anchors")
	return func() error {
		if err := count(same, c.In[0]); err != nil {
			return err
		}
		return anchors.Launch(oneBlock(c), c.Out, same, n)
	}, nil
}

var (
	worstOnCUDA = launches(&scoresSource, "worst", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], int64(c.Out.Shape.TotalSize()), c.Out.Shape[1]}
	})
	worstGradOnCUDA = launches(&scoresSource, "worst_dx", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], int64(c.Out.Shape.TotalSize()), c.Out.Shape[1]}
	})
)

func marginOnCUDA(margin float64) steps {
	return launches(&scoresSource, "margin_loss", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[2], c.In[0].Shape[0], math.Float64bits(margin)}
	})
}

func marginGradOnCUDA(margin float64) steps {
	return launches(&scoresSource, "margin_dp", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], c.In[3], c.In[0].Shape[0], math.Float64bits(margin)}
	})
}
