package encoders

import (
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// BatchNorm is a batch norm (Ioffe and Szegedy 2015) with the parameters weight and bias and the running statistics
// running_mean and running_var, all (D), as PyTorch's nn.BatchNorm1d has them. In training rows are normalised by the
// statistics of the batch, which Context.Statistics hears of, in inference and where the parameters are locked by the
// running ones. The zero value is that of all rows, with weights that start at 1.
//
// Running statistics are frozen parameters: whatever is done with parameters is done with them, saving, twins and means of
// checkpoints included, and the end of an update moves them.
type BatchNorm struct {
	// Lengths (R/Len) int32 says how many of every Len rows take part; the others come out as 0. nil: all do.
	Lengths *gorgonia.Node
	Len     int
	Weight  Init // nil: 1
}

// batchNormEps is PyTorch's default.
const batchNormEps = 1e-5

// Moments are a mean and a variance (D) of channels.
type Moments struct{ Mean, Variance *gorgonia.Node }

// Of normalises x (R, D) with the parameters of s: encoders.BatchNorm{}.Of(c, s.In("bn"), x).
func (b BatchNorm) Of(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	d := columns("batch norm", x)
	weight := b.Weight
	if weight == nil {
		weight = Const(1)
	}
	a := nn.BatchNormArgs{X: x, Gamma: s.Param("weight", weight, d), Beta: s.bias(Zeros, d), Lengths: b.Lengths, Len: b.Len, Eps: batchNormEps}
	statistics := s.As(Traits{Frozen: true})
	running := Moments{statistics.Param("running_mean", Zeros, d), statistics.Param("running_var", Const(1), d)}
	if c.Statistics == nil || s.traits.Locked {
		a.Mean, a.Variance = running.Mean, running.Variance
		y, _, _ := nn.BatchNorm(a)
		return y
	}
	y, mean, variance := nn.BatchNorm(a)
	c.Statistics(running, Moments{mean, variance})
	return y
}
