package encoders

import (
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

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
