package encoders

import (
	"cmp"

	"github.com/geoalign/geoalign/ops/conv"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// BatchNorm is a batch norm (Ioffe and Szegedy 2015) with the parameters weight and bias and the running statistics
// running_mean and running_var, all (D), as PyTorch's nn.BatchNorm1d has them. In training rows are normalised by the
// statistics of the batch, which Context.Statistics hears of, in inference and where the parameters are locked by the
// running ones. The zero value is that of all rows, with weights that start at 1.
//
// Running statistics are frozen parameters: whatever is done with parameters is done with them, saving, momentum copies
// and means of checkpoints included, and the end of an update moves them.
type BatchNorm struct {
	// Lengths (R/Len) int32 says how many of every Len rows take part; the others come out as 0. nil: all do.
	Lengths *gorgonia.Node
	Len     int
	Weight  Init           // nil: 1
	Add     *gorgonia.Node // (R, D), added to the result; nil: nothing
	ReLU    bool           // follows
	Eps     float32        // 0: BatchNormEps
}

// BatchNormEps is what batch norms add to a variance, PyTorch's default.
const BatchNormEps = 1e-5

// Moments are a mean and a variance (D) of channels.
type Moments struct{ Mean, Variance *gorgonia.Node }

// Of normalises x (R, D) with the parameters of s: encoders.BatchNorm{}.Of(c, s.In("bn"), x).
func (b BatchNorm) Of(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	a := b.args(s, x, columns("batch norm", x))
	if c.Statistics == nil || s.traits.Locked {
		y, _, _ := nn.BatchNorm(a)
		return y
	}
	running := Moments{a.Mean, a.Variance}
	a.Mean, a.Variance, a.Group = nil, nil, c.Group
	y, mean, variance := nn.BatchNorm(a)
	c.Statistics(running, Moments{mean, variance})
	return y
}

// folded is the batch norm of inference of the convolution of x with w, in one pass that no gradient flows through.
func (b BatchNorm) folded(s Scope, x, w *gorgonia.Node, g conv.Geometry) *gorgonia.Node {
	return conv.Folded(w, g, b.args(s, x, w.Shape()[0]))
}

// args are the operands of a batch norm of d channels by its running statistics.
func (b BatchNorm) args(s Scope, x *gorgonia.Node, d int) nn.BatchNormArgs {
	weight := b.Weight
	if weight == nil {
		weight = Const(1)
	}
	a := nn.BatchNormArgs{X: x, Gamma: s.Param("weight", weight, d), Beta: s.bias(Zeros, d), Lengths: b.Lengths,
		Len: b.Len, Eps: cmp.Or(b.Eps, BatchNormEps), Add: b.Add, ReLU: b.ReLU}
	statistics := s.As(Traits{Frozen: true})
	a.Mean, a.Variance = statistics.Param("running_mean", Zeros, d), statistics.Param("running_var", Const(1), d)
	return a
}
