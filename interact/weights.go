package interact

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/interaction"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// weights returns the weights (R*Len) of the tokens of one side. raw are the tokens before
// their norm.
func (m MaxSim) weights(c *encoders.Context, s encoders.Scope, q interaction.Tokens,
	raw *gorgonia.Node) *gorgonia.Node {
	switch m.Reduce {
	case Sum:
		return q.Sum()
	case Soft:
		mlp := encoders.MLP{Space: space.Space{Dim: 1, Euclid: true}, Layers: 1, Hidden: m.Hidden, Activation: "relu"}
		return q.Softmax(mlp.Forward(c, s, raw)) // of (R*Len, 1)
	}
	return q.Mean()
}
