package attention

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Angles are those by which the places of a sequence turn pairs of channels of queries and keys (Su et al. 2021,
// section 3.4.2): of the first 2P channels of a head. The zero value turns none.
type Angles struct {
	Sin, Cos []float32 // (L, P), of each place in turn
	Pairs    int       // P
	// Adjacent pairs channels 2i and 2i+1, else i and P+i.
	Adjacent bool
}

// hash tells angles from others.
func (a Angles) hash() uint64 {
	h := fnv.New64a()
	for _, list := range [][]float32{a.Sin, a.Cos} {
		_ = binary.Write(h, binary.LittleEndian, list)
	}
	return h.Sum64()
}

// pair returns the channels of pair i.
func (a Angles) pair(i int) (int, int) {
	if a.Adjacent {
		return 2 * i, 2*i + 1
	}
	return i, a.Pairs + i
}

// TextAngles are the angles p/scale * theta^(-i/P) of pair i at place p, of l places.
func TextAngles(l, pairs int, theta, scale float64, adjacent bool) Angles {
	freq := make([]float64, pairs)
	for i := range freq {
		// Rounded as the tables of other programs are, whose far places would be elsewhere otherwise.
		freq[i] = float64(float32(math.Pow(theta, -float64(i)/float64(pairs)) / scale))
	}
	a := Angles{Sin: make([]float32, l*pairs), Cos: make([]float32, l*pairs), Pairs: pairs, Adjacent: adjacent}
	for p := range l {
		for i, f := range freq {
			s, c := math.Sincos(float64(float32(float64(p) * f)))
			a.Sin[p*pairs+i], a.Cos[p*pairs+i] = float32(s), float32(c)
		}
	}
	return a
}

// HeadsArgs are projections whose rows become those of SelfAttention.
type HeadsArgs struct {
	QKV    *gorgonia.Node // (R*L, (H+2G)*E) with rows [q | k | v]: H heads of queries, G of keys and of values
	Heads  int            // H
	Shared int            // G, a divisor of H: H/G heads of queries read one of keys and values (Ainslie et al. 2023)
	Len    int            // L
	Angles Angles         // of queries and keys
	Scale  float32        // of queries, besides that of SelfAttention; 0: 1
}

// Heads returns rows [q | k | v] of H heads each, with queries and keys turned by their places: (R*L, 3*H*E).
func Heads(a HeadsArgs) *gorgonia.Node {
	h := heads{HeadsArgs: a}
	if h.Scale == 0 {
		h.Scale = 1
	}
	h.QKV = nil
	return op.Apply(h.forward(), a.QKV)
}

type heads struct{ HeadsArgs }

func (h heads) args() string {
	return fmt.Sprintf("heads=%d shared=%d len=%d pairs=%d adjacent=%t angles=%x scale=%g", h.Heads, h.Shared, h.Len,
		h.Angles.Pairs, h.Angles.Adjacent, h.Angles.hash(), h.Scale)
}

func (h heads) shape(in []tensor.Shape) (tensor.Shape, error) {
	x := in[0]
	if err := op.All(
		op.Need(h.Heads > 0 && h.Shared > 0 && h.Heads%h.Shared == 0,
			"heads of keys must divide those of queries (got %d and %d)", h.Shared, h.Heads),
		op.Need(len(x) == 2 && h.Len > 0 && x[0]%h.Len == 0, "want a matrix with a multiple of %d rows (got %v)", h.Len,
			x),
	); err != nil {
		return nil, err
	}
	e := x[1] / (h.Heads + 2*h.Shared)
	return tensor.Shape{x[0], 3 * h.Heads * e}, op.All(
		op.Need(x[1]%(h.Heads+2*h.Shared) == 0, "qkv must have (%d+2*%d)*E columns (got %d)", h.Heads, h.Shared, x[1]),
		op.Need(2*h.Angles.Pairs <= e, "%d pairs do not fit into a head of %d channels", h.Angles.Pairs, e),
		op.Need(len(h.Angles.Sin) == h.Len*h.Angles.Pairs && len(h.Angles.Cos) == len(h.Angles.Sin),
			"want angles of %d places and %d pairs (got %d and %d)", h.Len, h.Angles.Pairs, len(h.Angles.Sin),
			len(h.Angles.Cos)),
	)
}

// turn adds x, a head at place p, to y, turned by the angles times sign and scaled.
func (h heads) turn(y, x []float32, p int, sign, scale float32) {
	n := h.Angles.Pairs
	for i := range n {
		s, c := sign*h.Angles.Sin[p*n+i], h.Angles.Cos[p*n+i]
		j, k := h.Angles.pair(i)
		y[j] += scale * (x[j]*c - x[k]*s)
		y[k] += scale * (x[k]*c + x[j]*s)
	}
	for i := 2 * n; i < len(x); i++ {
		y[i] += scale * x[i]
	}
}

// rows calls visit for every head of the wide form and its head of the narrow one, by where they begin in a row. part
// is 0 for queries, 1 for keys, 2 for values.
func (h heads) rows(e int, visit func(part, wide, narrow int)) {
	for part := range 3 {
		for i := range h.Heads {
			narrow := i
			if part > 0 {
				narrow = h.Heads + (part-1)*h.Shared + i/(h.Heads/h.Shared)
			}
			visit(part, (part*h.Heads+i)*e, narrow*e)
		}
	}
}

// by returns the sign of the angles and the scale of a part.
func (h heads) by(part int) (turned bool, scale float32) {
	if part == 0 {
		return true, h.Scale
	}
	return part == 1, 1
}

func (h heads) forward() *op.Op {
	return &op.Op{
		Kind: "heads", Args: h.args(), Diff: []bool{true}, Shape: h.shape,
		Host: func(c *exec.Call) (exec.Step, error) { return h.step(c, true) },
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(h.gradient(in[0].Shape()), dy)}
		},
	}
}

// gradient returns dx (R*L, (H+2G)*E) for dy: heads turned back, and of those that share one the sum.
func (h heads) gradient(shape tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "heads dx", Args: h.args(), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			want, err := h.shape([]tensor.Shape{shape})
			if err != nil {
				return nil, err
			}
			return shape.Clone(), op.Need(in[0].Eq(want), "dy must have shape %v (got %v)", want, in[0])
		},
		Host: func(c *exec.Call) (exec.Step, error) { return h.step(c, false) },
	}
}

// step makes the wide form of the narrow one, or back the gradient of the narrow one of that of the wide one.
func (h heads) step(c *exec.Call, forward bool) (exec.Step, error) {
	in, out := c.In[0].Dim(1), c.Out.Dim(1)
	e, sign := out/(3*h.Heads), float32(1)
	if !forward {
		e, sign = in/(3*h.Heads), -1
	}
	return c.For(c.Out.Dim(0), op.RowGrain(2*(in+out)), func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			x, y := c.In[0].F32[r*in:][:in], c.Out.F32[r*out:][:out]
			clear(y)
			h.rows(e, func(part, wide, narrow int) {
				from, to := narrow, wide
				if !forward {
					from, to = wide, narrow
				}
				x, y := x[from:][:e], y[to:][:e]
				if turned, scale := h.by(part); turned {
					h.turn(y, x, r%h.Len, sign, scale)
				} else {
					for i, v := range x {
						y[i] += v
					}
				}
			})
		}
	})
}
