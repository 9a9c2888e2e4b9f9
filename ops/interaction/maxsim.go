package interaction

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Tokens are the tokens of one side.
type Tokens struct {
	// Rows are R sequences of Len tokens, (R*Len, C).
	Rows *gorgonia.Node
	// Lengths (R) int32, or nil: only tokens [First, Lengths[i]) of sequence i take part.
	Lengths *gorgonia.Node
	Len     int
	First   int // 1 leaves a class token out
	// Weights (R*Len) are those of the tokens in the sum of their maxima; nil: the sum is not
	// there.
	Weights *gorgonia.Node
}

// MaxSim returns the scores (N, M) of images x (N*T, C) and texts y (M*L, C) by their tokens,
//
//	s_ij = sum_t v_it max_l x_it.y_jl + sum_l w_jl max_t x_it.y_jl
//
// with weights v of the images' tokens and w of the texts', of which at least one is there.
// The operator is ColBERT's MaxSim (Khattab and Zaharia 2020, equation 3); with weights 1/n it
// is that of FILIP (Yao et al. 2021, equation 4). A sequence without a token has the score 0 with all.
// Of equal products the first is the maximum; a NaN never is, unless it stands first or all
// are. Gradients go to rows and weights, through the maxima alone.
//
// Products are made in float32, for blocks of images and texts, so that no memory is taken for
// all of them. The place of each maximum is kept: 4 bytes x N*M*(T+L) with both sums.
func MaxSim(images, texts Tokens) *gorgonia.Node {
	in := op.Operands{images.Rows, texts.Rows}
	x, kept := &maxSim{}, 0
	for k, q := range []Tokens{images, texts} {
		s := side{rows: k, lengths: in.Add(q.Lengths), weights: in.Add(q.Weights), first: q.First, len: q.Len,
			places: -1}
		if s.weights >= 0 {
			s.places, kept = kept, kept+1
		}
		x.sides[k] = s
	}
	x.operands = len(in)
	if kept == 0 {
		panic(&op.BuildError{Op: "maxsim", Err: errors.New("want weights of images or of texts")})
	}
	return op.Apply(x.forward(), in...)
}

// side describes one side: the operands, -1 for those that there are not, and where the places
// of its tokens' maxima are among the auxiliary results.
type side struct {
	rows, lengths, weights int
	first, len             int
	places                 int
}

// maxSim describes the ops: images first, then texts.
type maxSim struct {
	sides    [2]side
	operands int
}

// onCUDA is the op as its steps for the CUDA device know it.
func (x *maxSim) onCUDA() *oncuda.MaxSim {
	return &oncuda.MaxSim{Sides: sidesOnCUDA(x.sides), Operands: x.operands}
}

// sidesOnCUDA are both sides as steps for the CUDA device know them.
func sidesOnCUDA(sides [2]side) (list [2]oncuda.Side) {
	for k, s := range sides {
		list[k] = s.onCUDA()
	}
	return list
}

func (s side) onCUDA() oncuda.Side {
	return oncuda.Side{Lengths: s.lengths, Weights: s.weights, First: s.first, Len: s.len, Places: s.places}
}

func (x *maxSim) args() string { return fmt.Sprintf("%+v", x.sides) }

func (x *maxSim) shape(in []tensor.Shape) (tensor.Shape, error) {
	out := tensor.Shape{0, 0}
	for k, s := range x.sides {
		n, err := s.sequences(in, in[k])
		if err != nil {
			return nil, err
		}
		if err := op.WantShape(in, s.weights, "weights", in[k][0]); err != nil {
			return nil, err
		}
		out[k] = n
	}
	return out, op.Need(in[0][1] == in[1][1], "images and texts must have as many channels (got %d and %d)", in[0][1],
		in[1][1])
}

// sequences returns how many sequences rows of a shape are.
func (s side) sequences(in []tensor.Shape, rows tensor.Shape) (int, error) {
	if err := op.All(
		op.Need(len(rows) == 2 && s.len > 0 && rows[0]%max(1, s.len) == 0, "want rows (R*%d, C) (got %v)", s.len, rows),
		op.Need(s.first >= 0 && s.first < max(1, s.len), "the first token must be in [0, %d) (got %d)", s.len, s.first),
	); err != nil {
		return 0, err
	}
	n := rows[0] / s.len
	return n, op.WantShape(in, s.lengths, "lengths", n)
}

// span returns which tokens of sequence i of a side take part.
func (s side) span(c *exec.Call, i int) (lo, hi int) {
	hi = s.len
	if s.lengths >= 0 {
		hi = int(c.In[s.lengths].I32[i])
	}
	return s.first, max(hi, s.first)
}

// check looks at the lengths of a run.
func (s side) check(c *exec.Call) error {
	if s.lengths < 0 {
		return nil
	}
	for i, n := range c.In[s.lengths].I32 {
		if int(n) > s.len {
			return fmt.Errorf("ops: tokens: length %d of sequence %d: want at most %d", n, i, s.len)
		}
	}
	return nil
}

// at returns where the places of image i and text j of m texts begin.
func (s side) at(i, j, m int) int { return (i*m + j) * s.len }

func (x *maxSim) forward() *op.Op {
	o := &op.Op{Kind: "maxsim", Args: x.args(), Shape: x.shape, Diff: make([]bool, x.operands), FLOPs: x.flops}
	for _, s := range x.sides {
		o.Diff[s.rows] = true
		if s.weights >= 0 {
			o.Diff[s.weights] = true
		}
	}
	o.Aux = func(in []tensor.Shape) (list []exec.AuxSpec) {
		n, m := in[0][0]/x.sides[0].len, in[1][0]/x.sides[1].len
		for _, s := range x.sides {
			if s.places >= 0 {
				list = append(list, exec.AuxSpec{Shape: tensor.Shape{n, m, s.len}, Int: true})
			}
		}
		return list
	}
	o.Scratch = func(in []tensor.Shape, threads int) int { return threads * x.floats(in[0][1]) }
	o.Host = x.host
	o.On = x.onCUDA().Forward()
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		operands := append(append(gorgonia.Nodes{}, in...), out, dy)
		grads := make(gorgonia.Nodes, x.operands)
		for k, s := range x.sides {
			grads[s.rows] = op.Apply(x.rowsGradient(k), operands...)
			if s.weights >= 0 {
				grads[s.weights] = op.Apply(x.weightsGradient(k), operands...)
			}
		}
		return grads
	}
	return o
}

// flops counts the products of all tokens.
func (x *maxSim) flops(in []tensor.Shape) int64 {
	return 2 * int64(in[0][0]) * int64(in[1][0]) * int64(in[0][1])
}
