package model

import (
	"errors"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// net is a computation under construction with its parameters and inputs.
type net struct {
	g      *gorgonia.ExprGraph
	inputs *feed.Inputs
	params *binding // online
	twins  *binding // momentum
}

// newNet starts a computation whose parameters are those of p.
func newNet(p *Params) *net {
	g := gorgonia.NewGraph()
	n := &net{g: g, inputs: feed.New(g), params: p.bind(g, false), twins: p.bind(g, true)}
	n.twins.online = n.params
	return n
}

// towerInputs are the inputs of a tower from rows of a batch, whose columns names renames to
// others of the batch where it has them. Ids of a sequence come flat.
func (n *net) towerInputs(t encoders.Tower, rows int, names map[string]string) encoders.Inputs {
	in := encoders.Inputs{}
	for _, c := range t.Columns() {
		name := c.Name
		if other, ok := names[name]; ok {
			c.Name = other
		}
		if len(c.Shape) == 1 && c.Type == batch.Int32 {
			in[name] = n.inputs.Flat(c, rows)
		} else {
			in[name] = n.inputs.Column(c, rows)
		}
	}
	return in
}

// withSecond puts the second pictures of rows of a batch behind the inputs in of their first ones, of a tower of pixels.
func (n *net) withSecond(t encoders.Tower, rows int, in encoders.Inputs) encoders.Inputs {
	second := n.towerInputs(t, rows, map[string]string{batch.Images: batch.SecondImages})
	return encoders.Inputs{batch.Images: layout.ConcatRows(in[batch.Images], second[batch.Images])} // (2*rows, 3, S, S)
}

// compileEval compiles a computation for inference and binds parameters and inputs.
func (n *net) compileEval(c exec.Config, outputs ...*gorgonia.Node) (*exec.Machine, error) {
	if p := n.params.params; p.source != nil {
		if err := errors.Join(p.load(), p.held.keep(c.Engine, p.list)); err != nil {
			return nil, err
		}
	}
	c.Outputs = outputs
	m, err := exec.Compile(n.g, c)
	if err != nil {
		return nil, err
	}
	held := &n.params.params.held
	if onDevice(c.Engine) != nil {
		held.add(m)
	}
	if err := errors.Join(n.bindParams(m), n.prepareOnce(c.Engine, m), n.inputs.Bind(m)); err != nil {
		return nil, errors.Join(err, held.drop(m))
	}
	return m, nil
}
