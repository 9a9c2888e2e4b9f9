package attention

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/ops/attention/internal/oncuda"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Letters of the attention files: R rows (sequences of queries), N sequences of
// keys, Lq and Lk tokens of a query and of a key sequence, H heads, E = D/H.

// SelfArgs are R sequences of L tokens that attend to themselves.
type SelfArgs struct {
	QKV     *gorgonia.Node // (R*L, 3D) with rows [q | k | v], the H heads of width D/H side by side inside each
	Lengths *gorgonia.Node // (R) int32, the keys that exist in each sequence, the first ones; nil: all L
	Bits    *gorgonia.Node // dropout mask of the probabilities, nn.DropoutBits for R*H*L rows of L elements; nil: none
	// (H, L, L), added to the scores of every sequence, such as RelativeBias, or (R*H, L, L), of each its own, such as
	// Disentangled, which the CUDA device has no steps for; nil: none
	Bias   *gorgonia.Node
	Causal bool    // a token attends to itself and those before it
	Len    int     // L
	Heads  int     // H
	Keep   float32 // share of the probabilities that dropout keeps, in (0, 1]
}

// SelfAttention returns softmax(q k^T / sqrt(D/H)) v of every sequence and head
// (Vaswani et al. 2017, equation 1): (R*L, D).
//
// A key beyond the length of its sequence gets probability exactly 0 and gradient 0, not
// a logit lowered by 10000 as in BERT's code: results differ from that by less than
// rounding. Queries beyond it are computed like any other. A sequence of length 0 gives
// zeros. A probability whose bit of dropout is zero becomes 0, the others are divided by
// Keep.
func SelfAttention(args SelfArgs) *gorgonia.Node {
	a := &attention{self: true, causal: args.Causal, lq: args.Len, lk: args.Len, heads: args.Heads, keep: args.Keep}
	return a.apply(op.Operands{args.QKV}, nil, args.Lengths, args.Bits, args.Bias)
}

// CrossArgs are R sequences of Lq queries that attend to N sequences of Lk keys.
type CrossArgs struct {
	Q  *gorgonia.Node // (R*Lq, D)
	KV *gorgonia.Node // (N*Lk, 2D) with rows [k | v]
	// Index (R) int32 names the key sequence that row r attends to, so that one sequence
	// serves many rows without a copy; nil means r itself, and then N is R.
	Index   *gorgonia.Node
	Lengths *gorgonia.Node // (R) int32, the keys that row r sees, the first ones; nil: all Lk
	// dropout mask of the probabilities, nn.DropoutBits for R*H*Lq rows of Lk elements; nil: none
	Bits             *gorgonia.Node
	Bias             *gorgonia.Node // (H, Lq, Lk), added to the scores of every row, for rows without Index; nil: none
	QueryLen, KeyLen int            // Lq and Lk
	Heads            int            // H
	Keep             float32        // share of the probabilities that dropout keeps, in (0, 1]
}

// CrossAttention is SelfAttention with keys and values of other sequences: (R*Lq, D).
func CrossAttention(args CrossArgs) *gorgonia.Node {
	a := &attention{lq: args.QueryLen, lk: args.KeyLen, heads: args.Heads, keep: args.Keep}
	return a.apply(op.Operands{args.Q, args.KV}, args.Index, args.Lengths, args.Bits, args.Bias)
}

// attention describes an attention op. index, lengths, bits and bias are the positions
// of those operands, or -1.
type attention struct {
	self, causal, own          bool // own: every sequence has a bias of its own
	lq, lk, heads              int
	keep                       float32
	index, lengths, bits, bias int
	operands                   int
}

// onCUDA is the op as its steps for the CUDA device know it.
func (a *attention) onCUDA() oncuda.Attention {
	return oncuda.Attention{
		Self: a.self, Causal: a.causal, LQ: a.lq, LK: a.lk, Heads: a.heads, Keep: a.keep,
		Index: a.index, Lengths: a.lengths, Bits: a.bits, Bias: a.bias,
	}
}

func (a *attention) apply(in op.Operands, index, lengths, bits, bias *gorgonia.Node) *gorgonia.Node {
	a.index, a.lengths, a.bits, a.bias = in.Add(index), in.Add(lengths), in.Add(bits), in.Add(bias)
	a.operands = len(in)
	a.own = a.self && bias != nil && bias.Dims() == 3 && bias.Shape()[0] > a.heads
	return op.Apply(a.forward(), in...)
}

func (a *attention) args() string {
	return fmt.Sprintf("self=%t causal=%t lq=%d lk=%d heads=%d keep=%g index=%d lengths=%d bits=%d bias=%d own=%t",
		a.self, a.causal, a.lq, a.lk, a.heads, a.keep, a.index, a.lengths, a.bits, a.bias, a.own)
}

// attentionDims are the sizes that follow from the operands' shapes.
type attentionDims struct {
	rows, seqs, d, e int
	ldq, ldkv        int // row strides of queries, and of keys and values
	words            int // mask words of a row of probabilities
	block            int // queries that are worked on at a time
}

// dims returns the sizes; shape has checked that they fit.
func (a *attention) dims(in []tensor.Shape) attentionDims {
	var s attentionDims
	s.rows = in[0][0] / a.lq
	if a.self {
		s.seqs, s.d = s.rows, in[0][1]/3
		s.ldq, s.ldkv = 3*s.d, 3*s.d
	} else {
		s.seqs, s.d = in[1][0]/a.lk, in[0][1]
		s.ldq, s.ldkv = s.d, 2*s.d
	}
	s.e = s.d / a.heads
	s.words = nn.MaskWords(a.lk)
	s.block = attend.BlockSize(a.lq, a.lk)
	if a.lq == 1 { // rows that share their keys are worked on together
		s.block = attend.BlockSize(s.rows, a.lk)
	}
	return s
}

// callDims returns the sizes for a call, whose first operands are the forward's.
func (a *attention) callDims(c *exec.Call) attentionDims {
	shapes := []tensor.Shape{c.In[0].Shape}
	if !a.self {
		shapes = append(shapes, c.In[1].Shape)
	}
	return a.dims(shapes)
}

func (a *attention) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.All(
		op.Need(a.lq > 0 && a.lk > 0 && a.heads > 0,
			"want at least one token and one head (got %d queries, %d keys, %d heads)", a.lq, a.lk, a.heads),
		nn.CheckKeep(a.keep),
	); err != nil {
		return nil, err
	}
	q := in[0]
	if err := op.Need(len(q) == 2 && q[0]%a.lq == 0, "want a matrix with a multiple of %d rows (got %v)", a.lq,
		q); err != nil {
		return nil, err
	}
	if a.self {
		if err := op.Need(q[1]%(3*a.heads) == 0, "qkv must have 3D columns, D a multiple of %d heads (got %d)",
			a.heads, q[1]); err != nil {
			return nil, err
		}
	} else if err := a.checkKeys(q, in[1]); err != nil {
		return nil, err
	}
	s := a.dims(in)
	if err := op.All(
		op.Need(a.index >= 0 || s.seqs == s.rows, "without index, want as many key sequences as rows (got %d and %d)",
			s.seqs, s.rows),
		a.checkInts(in, a.index, "index", s.rows),
		a.checkInts(in, a.lengths, "lengths", s.rows),
	); err != nil {
		return nil, err
	}
	if a.bits >= 0 {
		words := s.rows * a.heads * a.lq * s.words
		if err := op.Need(in[a.bits].TotalSize() == words, "dropout mask must have %d words (got %v)", words,
			in[a.bits]); err != nil {
			return nil, err
		}
	}
	if a.bias >= 0 {
		each := a.heads
		if a.own {
			each *= s.rows
		}
		if err := op.All(
			op.Need(in[a.bias].Eq(tensor.Shape{each, a.lq, a.lk}), "bias must have shape (%d, %d, %d) (got %v)",
				each, a.lq, a.lk, in[a.bias]),
			op.Need(a.index < 0, "rows with a bias have key sequences of their own: leave out index"),
		); err != nil {
			return nil, err
		}
	}
	return tensor.Shape{q[0], s.d}, nil
}

func (a *attention) checkKeys(q, kv tensor.Shape) error {
	return op.All(
		op.Need(q[1]%a.heads == 0, "q must have a multiple of %d heads columns (got %d)", a.heads, q[1]),
		op.Need(len(kv) == 2 && kv[0]%a.lk == 0, "want kv with a multiple of %d rows (got %v)", a.lk, kv),
		op.Need(len(kv) == 2 && kv[1] == 2*q[1], "kv must have twice the columns of q, %d (got %v)", 2*q[1], kv),
	)
}

func (a *attention) checkInts(in []tensor.Shape, operand int, name string, n int) error {
	if operand < 0 {
		return nil
	}
	return op.Need(len(in[operand]) == 1 && in[operand][0] == n, "%s must have shape (%d) (got %v)", name, n,
		in[operand])
}

// checkValues looks at the integers of a run: a wrong one would read memory that
// belongs to something else.
func (a *attention) checkValues(c *exec.Call, seqs int) error {
	if a.index >= 0 {
		for r, n := range c.In[a.index].I32 {
			if n < 0 || int(n) >= seqs {
				return fmt.Errorf("ops: attention: index[%d] is %d: want a key sequence in [0, %d)", r, n, seqs)
			}
		}
	}
	if a.lengths >= 0 {
		for r, n := range c.In[a.lengths].I32 {
			if n < 0 || int(n) > a.lk {
				return fmt.Errorf("ops: attention: lengths[%d] is %d: want [0, %d]", r, n, a.lk)
			}
		}
	}
	return nil
}

// keys returns how many keys row r sees.
func (a *attention) keys(c *exec.Call, r int) int {
	if a.lengths < 0 {
		return a.lk
	}
	return int(c.In[a.lengths].I32[r])
}
