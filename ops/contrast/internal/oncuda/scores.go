package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var scoresSource = cuda.NewSource(files, "scores", "sums.cuh", "scores.cu")

// PairLoss is a loss that is a sum over the rows of scores, whose kernels have the name of its kind.
type PairLoss struct {
	Kind       string
	Scalar     bool // operand 1 is a scalar
	IDs        int  // operand, -1: none
	Parameters []float64
}

// eachRow is the grid of a kernel of scores: a block for each row.
func eachRow(c *exec.DeviceCall) cuda.Grid { return cuda.Grid{X: c.In[0].Shape[0], Threads: 128} }

// read are the parameters that a loss reads: scores, what it has besides, and ids.
func (l PairLoss) read(c *exec.DeviceCall) []any {
	p := []any{c.In[0]}
	if l.Scalar {
		p = append(p, c.In[1])
	}
	return append(p, cuda.Optional(c, l.IDs))
}

// with are parameters with those of the loss behind them.
func (l PairLoss) with(args []any) []any {
	for _, p := range l.Parameters {
		args = append(args, cuda.Double(p))
	}
	return args
}

// Forward is the step of the loss.
func (l PairLoss) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n := c.In[0].Shape[0]
		partial := cuda.Scratch(c, 8*int64(n))
		each, all := cuda.Load(c, scoresSource, l.Kind), cuda.Load(c, scoresSource, "total")
		return func() {
			args := append(append([]any{partial}, l.read(c)...), n)
			each.Enqueue(eachRow(c), l.with(args)...)
			all.Enqueue(oneBlock(c), c.Out, partial, n)
		}
	})
}

// Backward is the step of its gradient.
func (l PairLoss) Backward() cuda.Steps {
	return cuda.OnKernel(scoresSource, l.Kind+"_ds", eachRow, func(c *exec.DeviceCall) []any {
		args := append(append([]any{c.Out}, l.read(c)...), c.In[len(c.In)-1], c.In[0].Shape[0])
		return l.with(args)
	})
}

// sameIDs launches the kernel that the number of triplets is made of, for ids of n rows.
func sameIDs(c *exec.DeviceCall, n int) func(same cuda.Pointer, ids exec.Operand) {
	k := cuda.Load(c, scoresSource, "same_ids")
	return func(same cuda.Pointer, ids exec.Operand) {
		k.Enqueue(cuda.Grid{X: n, Threads: 128}, same, ids, n)
	}
}

// Triplets is a triplet loss.
type Triplets struct {
	Hardest, Soft bool
	Margin        float64
}

// Forward is the step of the loss.
func (t Triplets) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n := c.In[0].Shape[0]
		partial := cuda.Scratch(c, 16*int64(n))
		same := partial + cuda.Pointer(8*n)
		count, each, mean := sameIDs(c, n), cuda.Load(c, scoresSource, "triplet"),
			cuda.Load(c, scoresSource, "triplet_mean")
		return func() {
			count(same, c.In[1])
			each.Enqueue(eachRow(c), partial, c.In[0], c.In[1], n, t.Hardest, t.Soft, cuda.Double(t.Margin))
			mean.Enqueue(oneBlock(c), c.Out, partial, same, n, t.Hardest)
		}
	})
}

// Backward is the step of its gradient.
func (t Triplets) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n := c.In[0].Shape[0]
		same := cuda.Scratch(c, 8*int64(n))
		count, each := sameIDs(c, n), cuda.Load(c, scoresSource, "triplet_ds")
		return func() {
			count(same, c.In[1])
			each.Enqueue(eachRow(c), c.Out, c.In[0], c.In[1], c.In[2], same, n, t.Hardest, t.Soft,
				cuda.Double(t.Margin))
		}
	})
}

// TripletAnchors is the step of the number of anchors that have triplets.
func TripletAnchors() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n := c.In[0].Shape[0]
		same := cuda.Scratch(c, 8*int64(n))
		count, anchors := sameIDs(c, n), cuda.Load(c, scoresSource, "triplet_anchors")
		return func() {
			count(same, c.In[0])
			anchors.Enqueue(oneBlock(c), c.Out, same, n)
		}
	})
}

var (
	Worst = cuda.OnKernel(scoresSource, "worst", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], int64(c.Out.Shape.TotalSize()), c.Out.Shape[1]}
	})
	WorstGrad = cuda.OnKernel(scoresSource, "worst_dx", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], int64(c.Out.Shape.TotalSize()), c.Out.Shape[1]}
	})
)

// Margin is the step of the mean of max(0, margin - ...).
func Margin(margin float64) cuda.Steps {
	return cuda.OnKernel(scoresSource, "margin_loss", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[2], c.In[0].Shape[0], cuda.Double(margin)}
	})
}

// MarginGrad is the step of its gradients.
func MarginGrad(margin float64) cuda.Steps {
	return cuda.OnKernel(scoresSource, "margin_dp", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], c.In[3], c.In[0].Shape[0], cuda.Double(margin)}
	})
}
