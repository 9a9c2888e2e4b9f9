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
