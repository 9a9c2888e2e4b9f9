package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// bottleneck returns the output h (R, D) of the part s of a block with what its adapter adds: a bottleneck behind the
// attention and behind the feed-forward part of every block, before the residual (Houlsby et al. 2019, figure 2):
//
//	y = h + up(act(down(h)))
//
// with the parameters adapter/down and adapter/up, weights and biases, of the part that they stand
// behind. The weight of down starts as PyTorch's default of a linear layer, all others at 0: a fresh
// adapter changes nothing. With a metric M of Tuning, adapter/metric, down reads h M.
func (s Scope) bottleneck(h *gorgonia.Node) *gorgonia.Node {
	if s.tuned == nil || s.tuned.AdapterWidth == 0 {
		return h
	}
	t, d := s.tuned, columns("adapter", h)
	s = s.added().In("adapter")
	x := s.metric("metric", t, h)
	down := func(in int) (weight, bias Init) { return LinearDefault(in), Zeros }
	if t.AdapterActivation == "relu" {
		x = nn.ReLU(linear(s, "down", down, x, t.AdapterWidth))
	} else {
		x = linearActivated(s, "down", down, x, t.AdapterWidth, t.AdapterActivation)
	}
	return arith.Add(h, linear(s, "up", from(Zeros), x, d))
}

// Names of the parameters of SSF (Lian et al. 2022, section 3.2), below that of a linear layer or a norm:
// what it gives is multiplied by the scale, which starts at 1, and the shift is added, which starts at 0. A
// layer without a bias has a scale alone, so that its weight can take all of it in.
const (
	SSFScale = "ssf_scale"
	SSFShift = "ssf_shift"
)

// scaledShifted returns the output y (R, n) of the linear layer or norm s, its columns from the given one on of
// out, scaled and shifted where tuning does so.
func (s Scope) scaledShifted(y *gorgonia.Node, from, out int, shift bool) *gorgonia.Node {
	if s.tuned == nil || !s.tuned.SSF {
		return y
	}
	s = s.added()
	scale := s.Param(SSFScale, Const(1), out)
	if !shift {
		return nn.ScaleColumns(y, scale)
	}
	return nn.ScaleShift(y, scale, s.As(Traits{Group: GroupBias}).Param(SSFShift, Zeros, out), from)
}
