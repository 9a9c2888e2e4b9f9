package geodesic

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/geodesic/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// NearestCentre returns for each unit row of x (R, C) which of the first count centres
// (K, C), unit rows too, is nearest to it, (R) int32, and the angle to it in radians,
// (R). The nearest has the largest dot product, of equal ones the lowest index. Cosines
// are limited as those of similarity.Distance are. count is an int32 scalar in [0, K]; with 0 the index
// and the angle are 0. A row that is not finite gets index 0 and the angle NaN. There is
// no gradient; see CentreDistances for one.
//
// In a space other than one sphere the nearest has the smallest chord, which on a product of
// spheres is the largest dot product of the flat rows, and the angle is the local distance.
func NearestCentre(x, centres, count *gorgonia.Node, s space.Space) (index, angle *gorgonia.Node) {
	local := local{s}
	index = op.Apply(&op.Op{
		Kind: "nearest centre", Args: local.args(), Ints: true, Diff: []bool{false, false, false},
		On: oncuda.NearestCentre(local.Space),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := checkCentres(in); err != nil {
				return nil, err
			}
			if err := local.Check(in[0][1]); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0]}, op.Need(len(in[2]) == 0, "count must be a scalar (got %v)", in[2])
		},
		Aux:     func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0]}}} },
		Scratch: func(in []tensor.Shape, _ int) int { return in[0][0]*in[1][0] + local.floats(in) },
		FLOPs:   centreFLOPs,
		Host: func(c *exec.Call) (exec.Step, error) {
			d := newCentreDots(c, local)
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					row := d.row(r)
					k := vector.ArgMax(row)
					c.Out.I32[r], c.Aux[0].F32[r] = int32(k), finite(row[k])
					if !local.One() {
						c.Aux[0].F32[r] = d.distance(r, k)
					}
				}
				if !local.One() {
					return
				}
				vector.Acos(c.Aux[0].F32[lo:hi], c.Aux[0].F32[lo:hi], vector.AcosLimit)
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
				c.Engine.For(d.rows, op.RowGrain(d.count), body)
				return nil
			}, nil
		},
	}, x, centres, count)
	return index, op.Take(index, 0, index.Shape())
}

// checkCentres checks rows x (R, C) and centres (K, C).
func checkCentres(in []tensor.Shape) error {
	x, centres := in[0], in[1]
	return op.Need(len(x) == 2 && len(centres) == 2 && x[1] == centres[1], "want x (R, C) and centres (K, C)")
}

// centreFLOPs counts the operations of the dot products of rows and centres.
func centreFLOPs(in []tensor.Shape) int64 {
	return 2 * int64(in[0].TotalSize()) * int64(in[1][0])
}

// centreDots are the dot products of operands 0, rows (R, C), and 1, centres (K, C), of
// which the first count are in use. They take R*K values of scratch. Of Euclidean rows x and
// centres c they are x.c - |c|^2/2, which is largest for the nearest centre, both taken from
// the mean of the centres: beside the lengths of points that all lie far from the origin, the
// differences of their distances would be lost. These take local.floats more.
type centreDots struct {
	c           *exec.Call
	local       local
	rows, count int
	product     *gemm.Product

	mean, half, centres, x []float32 // (C), (K), (K, C) and (R, C), of Euclidean points
	shiftBody, halfBody    func(worker, lo, hi int)
}

func newCentreDots(c *exec.Call, local local) *centreDots {
	d := &centreDots{c: c, local: local, rows: c.In[0].Dim(0)}
	// In float32 whatever the engine's precision: rounding must not choose the centre,
	// and the small angles of near rows are lost in bfloat16.
	d.product = &gemm.Product{TransB: true, Alpha: 1, M: d.rows, K: c.In[0].Dim(1)}
	d.shiftBody, d.halfBody = d.shift, d.takeHalf
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
	p.A, p.B = gemm.Matrix{F32: d.c.In[0].F32, LD: p.K}, gemm.Matrix{F32: centres.F32, LD: p.K}
	if d.local.Euclid {
		d.fromMean()
		p.A.F32, p.B.F32 = d.x, d.centres
	}
	d.c.Engine.Multiply(p)
	if d.local.Euclid {
		d.c.Engine.For(d.rows, op.RowGrain(d.count), d.halfBody)
	}
	return nil
}

// fromMean sets rows and centres to their differences from the mean of the centres.
func (d *centreDots) fromMean() {
	n, k := d.product.K, d.c.In[1].Dim(0)
	s := d.c.Scratch[d.rows*k:]
	d.mean, s = s[:n], s[n:]
	d.half, s = s[:d.count], s[k:]
	d.centres, d.x = s[:k*n], s[k*n:(k+d.rows)*n]
	clear(d.mean)
	for i := range d.count {
		vector.Axpy(d.mean, 1/float32(d.count), d.c.In[1].F32[i*n:(i+1)*n])
	}
	d.c.Engine.For(d.count+d.rows, op.RowGrain(n), d.shiftBody)
}

// shift works on the centres, then the rows.
func (d *centreDots) shift(_, lo, hi int) {
	n := d.product.K
	for i := lo; i < hi; i++ {
		if r := i - d.count; r >= 0 {
			vector.Sub(d.x[r*n:(r+1)*n], d.c.In[0].F32[r*n:(r+1)*n], d.mean)
			continue
		}
		c := d.centres[i*n : (i+1)*n]
		vector.Sub(c, d.c.In[1].F32[i*n:(i+1)*n], d.mean)
		d.half[i] = float32(vector.SumSq(c) / 2)
	}
}

func (d *centreDots) takeHalf(_, lo, hi int) {
	for r := lo; r < hi; r++ {
		vector.Sub(d.row(r), d.row(r), d.half)
	}
}

// distance returns the local distance of row r and centre k.
func (d *centreDots) distance(r, k int) float32 {
	n := d.product.K
	return d.local.distance(d.c.In[0].F32[r*n:(r+1)*n], d.c.In[1].F32[k*n:(k+1)*n])
}

// floats is the scratch beside the products that centreDots need for operands in.
func (l local) floats(in []tensor.Shape) int {
	if !l.Euclid {
		return 0
	}
	r, k, c := in[0][0], in[1][0], in[0][1]
	return k + (1+k+r)*c
}

// row returns the products of row r.
func (d *centreDots) row(r int) []float32 { return d.c.Scratch[r*d.count : (r+1)*d.count] }

// finite returns the cosine dot, NaN for an infinite one: a clamp would make a small
// angle of it.
func finite(dot float32) float32 { return dot + 0*dot }
