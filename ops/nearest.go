package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// NearestCentre returns for each unit row of x (R, C) which of the first count centres
// (K, C), unit rows too, is nearest to it, (R) int32, and the angle to it in radians,
// (R). The nearest has the largest dot product, of equal ones the lowest index. Cosines
// are limited as ArcCos limits them. count is an int32 scalar in [0, K]; with 0 the index
// and the angle are 0. A row that is not finite gets index 0 and the angle NaN. There is
// no gradient; see CentreDistances for one.
//
// With another local metric the nearest has the smallest chord, which on a product of
// spheres is the largest dot product of the flat rows, and the angle is the local distance.
func NearestCentre(x, centres, count *gorgonia.Node, local Local) (index, angle *gorgonia.Node) {
	index = apply(&op{
		kind: "nearest centre", args: local.args(), ints: true, diff: []bool{false, false, false},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := checkCentres(in); err != nil {
				return nil, err
			}
			if err := local.check(in[0][1]); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0]}, need(len(in[2]) == 0, "count must be a scalar (got %v)", in[2])
		},
		aux:     func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0]}}} },
		scratch: func(in []tensor.Shape, _ int) int { return in[0][0]*in[1][0] + local.floats(in[1][0]) },
		flops:   centreFLOPs,
		prepare: func(c *exec.Call) (exec.Step, error) {
			d := newCentreDots(c, local)
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					row := d.row(r)
					k := kernel.ArgMax(row)
					c.Out.I32[r], c.Aux[0].F32[r] = int32(k), finite(row[k])
					if !local.one() {
						c.Aux[0].F32[r] = d.distance(r, k)
					}
				}
				if !local.one() {
					return
				}
				kernel.Acos(c.Aux[0].F32[lo:hi], c.Aux[0].F32[lo:hi], kernel.AcosLimit)
			}
			return func() error {
				if err := d.run(c.In[2].I32[0]); err != nil {
					return err
				}
				if d.count == 0 {
					clear(c.Out.I32)
					clear(c.Aux[0].F32)
					return nil
				}
				c.Engine.For(d.rows, grainRows(d.count), body)
				return nil
			}, nil
		},
	}, x, centres, count)
	return index, take(index, 0, index.Shape())
}

// checkCentres checks rows x (R, C) and centres (K, C).
func checkCentres(in []tensor.Shape) error {
	x, centres := in[0], in[1]
	return need(len(x) == 2 && len(centres) == 2 && x[1] == centres[1], "want x (R, C) and centres (K, C)")
}

// centreFLOPs counts the operations of the dot products of rows and centres.
func centreFLOPs(in []tensor.Shape) int64 {
	return 2 * int64(in[0].TotalSize()) * int64(in[1][0])
}

// centreDots are the dot products of operands 0, rows (R, C), and 1, centres (K, C), of
// which the first count are in use. They take R*K values of scratch.
type centreDots struct {
	c           *exec.Call
	local       Local
	rows, count int
	product     *kernel.Product
}

func newCentreDots(c *exec.Call, local Local) *centreDots {
	d := &centreDots{c: c, local: local, rows: c.In[0].Dim(0)}
	// In float32 whatever the engine's precision: rounding must not choose the centre,
	// and the small angles of near rows are lost in bfloat16.
	d.product = &kernel.Product{TransB: true, Alpha: 1, M: d.rows, K: c.In[0].Dim(1)}
	return d
}

// run computes the products.
func (d *centreDots) run(count int32) error {
	centres := d.c.In[1]
	if count < 0 || int(count) > centres.Dim(0) {
		return fmt.Errorf("ops: centres: count is %d: want [0, %d]", count, centres.Dim(0))
	}
	if d.count = int(count); d.count == 0 {
		return nil
	}
	p := d.product
	p.N, p.LDC, p.C = d.count, d.count, d.c.Scratch
	p.A, p.B = kernel.Matrix{F32: d.c.In[0].F32, LD: p.K}, kernel.Matrix{F32: centres.F32, LD: p.K}
	d.c.Engine.Multiply(p)
	if d.local.Euclid {
		half := d.c.Scratch[d.rows*centres.Dim(0):][:d.count]
		for k := range half {
			half[k] = float32(kernel.SumSq(centres.F32[k*p.K:(k+1)*p.K]) / 2)
		}
		for r := range d.rows {
			row := d.row(r)
			for k, v := range half {
				row[k] -= v
			}
		}
	}
	return nil
}

// distance returns the local distance of row r and centre k.
func (d *centreDots) distance(r, k int) float32 {
	n := d.product.K
	return d.local.distance(d.c.In[0].F32[r*n:(r+1)*n], d.c.In[1].F32[k*n:(k+1)*n])
}

// floats is the scratch for half the squared lengths of k centres, which Euclidean
// distances take off the products.
func (l Local) floats(k int) int {
	if l.Euclid {
		return k
	}
	return 0
}

// row returns the products of row r.
func (d *centreDots) row(r int) []float32 { return d.c.Scratch[r*d.count : (r+1)*d.count] }

// finite returns the cosine dot, NaN for an infinite one: a clamp would make a small
// angle of it.
func finite(dot float32) float32 { return dot + 0*dot }
