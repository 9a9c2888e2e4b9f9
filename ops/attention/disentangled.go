package attention

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// DisentangledArgs are R sequences of L tokens and the embeddings of N distances, both through the layer of queries, keys
// and values.
type DisentangledArgs struct {
	QKV       *gorgonia.Node // (R*L, 3D) with rows [q | k | v], as SelfArgs
	Distances *gorgonia.Node // (N, 3D), N even: row N/2 + b is of distance bucket b, from -N/2 to N/2 - 1
	Len       int            // L
	Heads     int            // H
	// Farthest is where the buckets end: those of N/4 distances to either side have one each, farther ones are shared
	// evenly by their logarithm; 0: every distance has its own.
	Farthest int
	Scale    float32 // of the scores
}

// Disentangled returns the part of DeBERTa's scores that reads distances (He et al. 2021, equation 4), a bias of attention
// for every sequence: (R*H, L, L) with
//
//	scale (q_i K_b + k_j Q_b), b = bucket(i - j)
//
// for query i and key j, and the keys K and queries Q of the distances.
func Disentangled(a DisentangledArgs) *gorgonia.Node {
	d := disentangled{l: a.Len, heads: a.Heads, farthest: a.Farthest, scale: a.Scale}
	return op.Apply(d.forward(), a.QKV, a.Distances)
}

// disentangled describes the op.
type disentangled struct {
	l, heads, farthest int
	scale              float32
}

func (d disentangled) args() string {
	return fmt.Sprintf("l=%d heads=%d farthest=%d scale=%g", d.l, d.heads, d.farthest, d.scale)
}

func (d disentangled) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, t := in[0], in[1]
	if err := op.All(
		op.Need(d.l > 0 && d.heads > 0, "want at least one token and head (got %d and %d)", d.l, d.heads),
		op.Need(len(x) == 2 && d.l > 0 && x[0]%d.l == 0 && d.heads > 0 && x[1]%(3*d.heads) == 0,
			"want rows of %d tokens and 3D columns, D a multiple of %d heads (got %v)", d.l, d.heads, x),
		op.Need(len(t) == 2 && len(x) == 2 && t[0] >= 2 && t[0]%2 == 0 && t[1] == x[1],
			"want an even number of distances with the columns of the tokens (got %v and %v)", t, x),
		op.Need(d.farthest == 0 || len(t) == 2 && d.farthest > t[0]/4+1,
			"the farthest distance must be above those with buckets of their own (got %d)", d.farthest),
	); err != nil {
		return nil, err
	}
	return tensor.Shape{x[0] / d.l * d.heads, d.l, d.l}, nil
}

func (d disentangled) forward() *op.Op {
	return &op.Op{
		Kind: "disentangled bias", Args: d.args(), Diff: []bool{true, true}, Shape: d.shape,
		FLOPs: func(in []tensor.Shape) int64 { return 4 * int64(in[0][0]) * int64(d.l) * int64(in[0][1]/3) },
		Host: func(c *exec.Call) (exec.Step, error) {
			width := c.In[0].Dim(1) / 3
			e, of := width/d.heads, d.rows(c.In[1].Dim(0))
			return c.For(c.In[0].Dim(0)/d.l*d.heads, 1, func(_, lo, hi int) {
				x, t := c.In[0].F32, c.In[1].F32
				for n := lo; n < hi; n++ {
					out, h := c.Out.F32[n*d.l*d.l:], n%d.heads*e
					row := func(i int) []float32 { return x[(n/d.heads*d.l+i)*3*width+h:] }
					for i := range d.l {
						q := row(i)[:e]
						for j := range d.l {
							at := t[of[i-j+d.l-1]*3*width+h:]
							out[i*d.l+j] = d.scale * (vector.Dot(q, at[width:width+e]) + vector.Dot(row(j)[width:width+e], at[:e]))
						}
					}
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			back := op.Apply(d.backward(), in[0], in[1], dy)
			return gorgonia.Nodes{back, op.Take(back, 0, in[1].Shape())}
		},
	}
}

// backward is the gradient of tokens, with that of distances as its auxiliary result. Threads share out the heads, so the
// order of sums does not depend on their number.
func (d disentangled) backward() *op.Op {
	return &op.Op{
		Kind: "disentangled bias dx", Args: d.args(), Diff: []bool{false, false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			want, err := d.shape(in)
			if err != nil {
				return nil, err
			}
			return in[0].Clone(), op.Need(in[2].Eq(want), "dy must have shape %v (got %v)", want, in[2])
		},
		Aux:   func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[1]}} },
		FLOPs: func(in []tensor.Shape) int64 { return 8 * int64(in[0][0]) * int64(d.l) * int64(in[0][1]/3) },
		Host: func(c *exec.Call) (exec.Step, error) {
			width, rows, n := c.In[0].Dim(1)/3, c.In[0].Dim(0)/d.l, c.In[1].Dim(0)
			e, of := width/d.heads, d.rows(n)
			return c.For(d.heads, 1, func(_, lo, hi int) {
				x, t, dx, dt := c.In[0].F32, c.In[1].F32, c.Out.F32, c.Aux[0].F32
				for h := lo; h < hi; h++ {
					for part := range 3 {
						for i := range rows * d.l {
							clear(dx[i*3*width+part*width+h*e:][:e])
						}
						for i := range n {
							clear(dt[i*3*width+part*width+h*e:][:e])
						}
					}
					for r := range rows {
						dy := c.In[2].F32[(r*d.heads+h)*d.l*d.l:]
						for i := range d.l {
							q := (r*d.l+i)*3*width + h*e
							for j := range d.l {
								k, b := (r*d.l+j)*3*width+width+h*e, of[i-j+d.l-1]*3*width+h*e
								g := d.scale * dy[i*d.l+j]
								vector.Axpy(dx[q:q+e], g, t[b+width:b+width+e])
								vector.Axpy(dt[b+width:b+width+e], g, x[q:q+e])
								vector.Axpy(dx[k:k+e], g, t[b:b+e])
								vector.Axpy(dt[b:b+e], g, x[k:k+e])
							}
						}
					}
				}
			})
		},
	}
}

// rows returns which of n rows is of the distances 1-L to L-1.
func (d disentangled) rows(n int) []int {
	of := make([]int, 0, 2*d.l-1)
	for away := 1 - d.l; away < d.l; away++ {
		of = append(of, min(max(distanceBucket(away, n/2, d.farthest)+n/2, 0), n-1))
	}
	return of
}

// distanceBucket is the bucket of a distance by buckets to either side, in the float32 of the original: where a
// logarithm is nearly whole, that decides.
func distanceBucket(away, buckets, farthest int) int {
	middle, size := buckets/2, max(away, -away)
	if farthest == 0 || size <= middle {
		return away
	}
	share := float32(math.Log(float64(float32(size)/float32(middle)))) /
		float32(math.Log(float64(float32(float64(farthest-1)/float64(middle)))))
	bucket := int(math.Ceil(float64(share*float32(middle-1)))) + middle
	if away < 0 {
		return -bucket
	}
	return bucket
}
