package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// backward returns dx for the output, whose statistics it reads, x, gamma, beta, dy and lengths; dgamma and dbeta are
// its auxiliary results. With h = (x - mean) rstd and dy of those y alone that the positive part leaves, which are
// computed again,
//
//	dx = gamma rstd (dy - dbeta/n - h dgamma/n), or of given statistics gamma rstd dy
func (b *batchNorm) backward(n int) *op.Op {
	return &op.Op{
		Kind: "batch norm dx", Args: b.args(), Diff: make([]bool, n), InPlace: []int{4},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[1].Clone(), op.Need(in[1].Eq(in[4]), "x and dy must have one shape")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[2]}, {Shape: in[2]}}
		},
		Scratch: func(in []tensor.Shape, _ int) int { return partScratch(in[1]) + 3*in[1][1] },
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, sums := b.rowsOf(c, 1), newPartSums(c, 1)
			d := rows.d
			ranks := newRankSums(b.group, d)
			own := c.Scratch[len(c.Scratch)-3*d:]
			columns, slope, product := vector.Columns{Scale: own[:d], ReLU: b.relu}, own[d:2*d], own[2*d:]
			add := func(_, lo, hi int) {
				for p := lo; p < hi; p++ {
					sum, product := sums.begin(p)
					rows.each(sums.from(p), sums.from(p+1), func(lo, hi int) {
						columns.Sums(sum, product, c.In[1].F32[lo*d:hi*d], c.In[4].F32[lo*d:hi*d])
					})
				}
			}
			grad := func(_, lo, hi int) {
				rows.each(lo, hi, func(lo, hi int) {
					columns.Grad(c.Out.F32[lo*d:hi*d], c.In[1].F32[lo*d:hi*d], c.In[4].F32[lo*d:hi*d], slope, product)
				})
				rows.clear(c.Out.F32, lo, hi)
			}
			return func() error {
				if err := rows.count("batch norm"); err != nil {
					return err
				}
				mean, rstd := c.InAux[0][batchMean].F32, c.InAux[0][batchRstd].F32
				columns.Mean, columns.Shift = mean, c.In[3].F32
				vector.Mul(columns.Scale, c.In[2].F32, rstd)
				c.Engine.For(sums.parts, 1, add)
				total, products := sums.total()
				dgamma, dbeta := c.Aux[0].F32, c.Aux[1].F32
				n := float64(rows.n)
				if ranks != nil {
					copy(ranks.sum, total)
					copy(ranks.more, products)
					if err := ranks.exchange(rows.n); err != nil {
						return err
					}
					n = ranks.n
				}
				for j := range dgamma {
					h := products[j] * float64(rstd[j])
					dgamma[j], dbeta[j] = float32(h), float32(total[j])
					slope[j], product[j] = 0, 0
					if !b.given {
						scale, sum := float64(columns.Scale[j])/n, total[j]
						if ranks != nil {
							sum, h = 0, 0
							ranks.each(j, func(_, s, p float64) { sum, h = sum+s, h+p*float64(rstd[j]) })
						}
						slope[j], product[j] = float32(-scale*sum), float32(-scale*h*float64(rstd[j]))
					}
				}
				c.Engine.For(rows.rows, op.RowGrain(d), grad)
				return nil
			}, nil
		},
		On: b.onCUDA(oncuda.BatchNorm.Grad),
	}
}
