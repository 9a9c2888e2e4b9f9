package contrast

import (
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// Auxiliary results of the gradient op.
const (
	sigmoidScale = iota // gradient of the log scale t'
	sigmoidBias         // gradient of the bias b
)

// backward is the gradient op: operands are the forward's and the gradient g of the loss.
// With l = t s + b and d = sigmoid(l) for negative pairs, -sigmoid(-l) for positive ones,
//
//	ds = g/B t d,  dt' = g/B sum t s d,  db = g/B sum d
//
// in one pass over each row. ds may take the memory of the scores.
func (x *sigmoidContrast) backward() *op.Op {
	o := &op.Op{Kind: "sigmoid contrast dx", Args: x.args(), Scratch: sigmoidScratch, Diff: make([]bool, x.operands+1),
		InPlace: []int{0}, On: x.onCUDA().Backward()}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil }
	o.Aux = func([]tensor.Shape) []exec.AuxSpec {
		return []exec.AuxSpec{{Shape: tensor.ScalarShape()}, {Shape: tensor.ScalarShape()}}
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		rows, total := c.In[0].Dim(0), c.In[0].Dim(1)
		cols, blocks, logits, g := 0, sigmoidBlocks(total), logitsOf{}, float32(0)
		dots, sums := make([]float64, rows*blocks), make([]float64, rows*blocks)
		body := func(worker, lo, hi int) {
			l, d := sigmoidBuffers(c, worker)
			for i := lo; i < hi; i++ {
				r, start := i/blocks, i%blocks*sigmoidBlock
				end := min(start+sigmoidBlock, total)
				stop := max(start, min(end, cols))
				if x.own(c, r) < 0 {
					stop = start
				}
				dots[i], sums[i] = 0, 0
				for from := start; from < stop; from += sigmoidChunk {
					n := min(sigmoidChunk, stop-from)
					s := c.In[0].F32[r*total+from:][:n]
					logits.chunk(l[:n], d[:n], s)
					slopes(l[:n], d[:n])
					x.positives(c, r, from, n, func(j int) { d[j] = float32(-1 / (1 + math.Exp(float64(l[j])))) })
					dots[i] += float64(vector.Dot(d[:n], s))
					sums[i] += float64(vector.Sum(d[:n]))
					vector.Scale(c.Out.F32[r*total+from:][:n], g*logits.scale, d[:n])
				}
				clear(c.Out.F32[r*total+stop : r*total+end])
			}
		}
		return func() (err error) {
			if cols, err = x.numCols(c, total); err != nil {
				return err
			}
			logits, g = x.logits(c), c.In[x.operands].F32[0]/float32(max(1, x.kept(c)))
			c.Engine.For(rows*blocks, 2, body)
			var dot, sum float64
			for i := range dots {
				dot += dots[i]
				sum += sums[i]
			}
			c.Aux[sigmoidScale].F32[0] = float32(float64(g) * float64(logits.scale) * dot)
			c.Aux[sigmoidBias].F32[0] = float32(float64(g) * sum)
			return nil
		}, nil
	}
	return o
}

// slopes sets d, which holds exp(-|l|), to sigmoid(l).
func slopes(l, d []float32) {
	for j, e := range d {
		n := e
		if l[j] >= 0 {
			n = 1
		}
		d[j] = n / (1 + e)
	}
}
