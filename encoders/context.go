package encoders

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Context is what encoders need to know about the computation under construction.
type Context struct {
	// DropoutKey is the int32 input (2) that seeds this step's dropout masks;
	// nil switches dropout off.
	DropoutKey *gorgonia.Node
	// Share is where this process is one of several, int32 (2): the rank and the number of ranks. A row has the mask
	// then that it has in the global batch. nil: one process has it all.
	Share *gorgonia.Node
	// Rows is the number of samples of the batch here, with Share: what encoders are given are so many
	// sequences, or as many several times, such as clean captions and masked ones behind them.
	Rows int

	// Patches returns the rows of tokens of n images that a vision transformer keeps, int32, of
	// each image the class tokens first and then as many patches as it says; nil keeps all.
	// tokens is that of class tokens and patches of an image, classes that of the former.
	Patches func(n, tokens, classes int) (rows *gorgonia.Node, patches int)

	// Regions returns of r regions of each of n images the rows that come first, int32 (n*r), and how many of them
	// count, int32 (n); nil keeps all as they are.
	Regions func(n, r int) (rows, lengths *gorgonia.Node)

	// Masks returns for two masked views of n sequences of l tokens the rows that come first and how many of them
	// count, as Regions does, for PoolESA; nil: one view of all.
	Masks func(n, l int) (rows, lengths [2]*gorgonia.Node)

	// Statistics hears of each batch norm of a training step: which parameters are its running statistics, and the
	// statistics of the batch, or of each of its groups where it is normalised in several. nil: batch norms are those
	// of inference, and no gradient flows through convolutions.
	Statistics func(running Moments, batch ...Moments)

	// Shuffle returns the images of a batch of n in a random order, int32 (n), and where each of them lies in it, for
	// batch norms of groups of images; nil: groups are of images that follow each other.
	Shuffle func(n int) (order, back *gorgonia.Node)

	// Samples takes what an interaction learns from beside its gradients, in training; nil in evaluation.
	Samples func(n *gorgonia.Node)

	// Group is the processes that train together, over whose rows batch norms take their statistics; nil: this one
	// alone.
	Group parallel.Group

	sites uint64 // dropout places so far
	order order  // of the rows at hand
}

// order says how rows lie in the global batch: in so many stacks, each of which every rank has an equal share of, or at
// places of their own.
type order struct {
	stacks int            // 0: one
	places *gorgonia.Node // (M) int32, nil without
	whole  bool           // every rank has all rows
	fixed  bool           // whatever encoders are given
}

// Numbered says that what follows are M sequences, whose numbers in the global batch are numbers (M) int32, until the
// function that it returns is called.
func (c *Context) Numbered(numbers *gorgonia.Node) (end func()) {
	return c.set(order{places: numbers, fixed: true})
}

// Whole says that every rank has all rows of what follows until the function that it returns is called.
func (c *Context) Whole() (end func()) { return c.set(order{whole: true, fixed: true}) }

func (c *Context) set(o order) (end func()) {
	before := c.order
	c.order = o
	return func() { c.order = before }
}

// given says that so many rows are sequences of l: stacks of the batch's samples, unless a caller has said another
// order.
func (c *Context) given(rows, l int) {
	if c.Rows > 0 && l > 0 && !c.order.fixed {
		c.order = order{stacks: max(1, rows/l/c.Rows)}
	}
}

// at is the order of the rows of places, where their numbers in the global batch are known.
func (c *Context) at(p *Places) (end func()) {
	if p.Whole == nil {
		return func() {}
	}
	return c.set(order{places: p.Whole})
}

// SkipSites moves on by n dropout places, so that a second tower under the same key
// draws other masks.
func (c *Context) SkipSites(n uint64) { c.sites += n }

// bits returns the mask of one dropout place over n rows of cols elements, or nil.
func (c *Context) bits(n, cols int, p float64) *gorgonia.Node {
	if c.DropoutKey == nil || p == 0 {
		return nil
	}
	c.sites++
	if c.Share == nil || c.order.whole {
		return nn.DropoutBits(c.DropoutKey, c.sites, n, cols, keep(p))
	}
	return nn.DropoutShare(c.DropoutKey, c.Share, c.order.places, c.sites, n, max(1, c.order.stacks), cols, keep(p))
}

// dropout zeroes a share p of x (R, D) and scales the rest by 1/(1-p).
func (c *Context) dropout(x *gorgonia.Node, p float64) *gorgonia.Node {
	bits := c.bits(x.Shape()[0], x.Shape()[1], p)
	if bits == nil {
		return x
	}
	return nn.Dropout(x, bits, keep(p))
}

// geluDropout returns dropout of GELU of x.
func (c *Context) geluDropout(x *gorgonia.Node, p float64) *gorgonia.Node {
	if bits := c.bits(x.Shape()[0], x.Shape()[1], p); bits != nil {
		return nn.GELUDropout(x, bits, keep(p))
	}
	return nn.GELU(x)
}

func keep(p float64) float32 { return float32(1 - p) }

// columns returns D of x (R, D).
func columns(block string, x *gorgonia.Node) int {
	if x == nil || len(x.Shape()) != 2 {
		misuse(block, x, "want rows (R, D)")
	}
	return x.Shape()[1]
}

// sequences returns how many sequences of l rows x (R, D) holds.
func sequences(block string, x *gorgonia.Node, l int) int {
	columns(block, x)
	if l < 1 || x.Shape()[0]%l != 0 {
		misuse(block, x, "rows must be a multiple of the sequence length (got %d)", l)
	}
	return x.Shape()[0] / l
}

// misuse panics with the *op.BuildError that op.Catch turns into an error.
func misuse(block string, x *gorgonia.Node, format string, args ...any) {
	e := &op.BuildError{Op: block, Err: fmt.Errorf(format, args...)}
	if x != nil {
		e.Shapes = []tensor.Shape{x.Shape()}
	}
	panic(e)
}

// linear is a dense layer with its parameters name/weight (out, in) and name/bias.
func linear(s Scope, name string, start start, x *gorgonia.Node, out int) *gorgonia.Node {
	in := columns(name, x)
	weight, bias := start(in)
	s = s.In(name)
	return s.tunedLinear(x, nn.Linear(x, s.Param("weight", weight, out, in), s.bias(bias, out)), 0, out, true)
}

// linearNoBias is linear without a bias.
func linearNoBias(s Scope, name string, start start, x *gorgonia.Node, out int) *gorgonia.Node {
	in := columns(name, x)
	weight, _ := start(in)
	s = s.In(name)
	return s.tunedLinear(x, nn.Linear(x, s.Param("weight", weight, out, in), nil), 0, out, false)
}

// linearGELU is a dense layer followed by GELU.
func linearGELU(s Scope, name string, start start, x *gorgonia.Node, out int) *gorgonia.Node {
	return linearActivated(s, name, start, x, out, "")
}

// linearActivated is a dense layer followed by an activation by its name; empty: gelu.
func linearActivated(s Scope, name string, start start, x *gorgonia.Node, out int, activation string) *gorgonia.Node {
	in := columns(name, x)
	weight, bias := start(in)
	s = s.In(name)
	if activation == "" {
		activation = "gelu"
	}
	if s.tunesLinear() {
		y := nn.Linear(x, s.Param("weight", weight, out, in), s.bias(bias, out))
		return nn.Activated(s.tunedLinear(x, y, 0, out, true), activation)
	}
	return nn.LinearActivated(x, s.Param("weight", weight, out, in), s.bias(bias, out), activation)
}

// linearPart is the part of a dense layer of out columns that computes the n columns
// from the given one on.
func linearPart(s Scope, name string, start start, x *gorgonia.Node, from, n, out int) *gorgonia.Node {
	in := columns(name, x)
	weight, bias := start(in)
	s = s.In(name)
	return s.tunedLinear(x, nn.LinearPart(x, s.Param("weight", weight, out, in), s.bias(bias, out), from, n), from, out,
		true)
}

// norm is a layer norm with its parameters name/weight and name/bias.
func norm(s Scope, name string, x *gorgonia.Node, eps float32) *gorgonia.Node {
	d := columns(name, x)
	s = s.In(name)
	return s.scaledShifted(nn.LayerNorm(x, s.Param("weight", Const(1), d), s.bias(Zeros, d), eps), 0, d, true)
}

// addNorm is the seam between two blocks: sum is x + dropout(h), normed the layer norm
// of it with the parameters name/weight and name/bias.
func addNorm(s Scope, name string, h, x, bits *gorgonia.Node, keep, eps float32) (sum, normed *gorgonia.Node) {
	d := columns(name, x)
	s = s.In(name)
	sum, normed = nn.AddNorm(nn.AddNormArgs{H: h, X: x, Bits: bits, Gamma: s.Param("weight", Const(1), d),
		Beta: s.bias(Zeros, d), Keep: keep, Eps: eps})
	return sum, s.scaledShifted(normed, 0, d, true)
}

// defaultTo returns v, or the default if v is 0.
func defaultTo(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// isqrt returns the integer square root of n, or -1 if n is no square.
func isqrt(n int) int {
	r := int(math.Round(math.Sqrt(float64(n))))
	if r*r != n {
		return -1
	}
	return r
}
