package objectives

import (
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/relation"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Structure is the regulariser of STRUCTURE (NeurIPS 2025): a random walk among the rows of the
// batch on a side, with steps by the softmax of their cosines, shall end where it ends before
// the head. The loss of a side is the mean Jensen-Shannon divergence of walks of 1 to L steps.
// What is before the head is a constant to it: the gradient passes the features alone.
type Structure struct {
	Weight                         float64 // for each side
	Image, Text                    bool    // sides with the term
	Hops                           int     // L
	Temperature, TargetTemperature float64 // of the cosines after and before the head
	Warmup                         int     // updates over which the weight grows from 0
}

// Build implements Loss.
func (l Structure) Build(s *Step) (parts []Part) {
	s = s.Whole()
	var share *gorgonia.Node
	if ramp := (Ramp{To: 1, Steps: l.Warmup}); l.Warmup > 0 {
		share = s.Floats("structure share", func(f *feed.Step, dst []float32) error {
			dst[0] = float32(ramp.At(f.Update, f.PerEpoch))
			return nil
		})
	}
	add := func(name string, x Side) {
		part := s.Part(name, l.Weight, relation.HopDivergence(relation.HopArgs{
			Scores: cosines(x.Features), Target: cosines(s.Backbone(x)),
			Temperature: float32(l.Temperature), TargetTemperature: float32(l.TargetTemperature), Hops: l.Hops,
		}))
		part.Share = share
		parts = append(parts, part)
	}
	if l.Image {
		add("structure_image", s.Online.Image)
	}
	if l.Text {
		add("structure_text", s.Online.Text)
	}
	return parts
}

// cosines returns those of all rows x (N, D) with each other, (N, N).
func cosines(x *gorgonia.Node) *gorgonia.Node {
	unit := nn.L2Normalize(x, referenceEps)
	return similarity.Similarity(unit, unit, nil, nil)
}
