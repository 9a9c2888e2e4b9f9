package encoders

import (
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// Places names the token places whose states a caller reads. The last layer of a
// tower computes no other queries, residuals and feed-forward rows: attention needs
// every token as a key, but a state that nobody reads costs most of a layer. Place i
// is row Rows[i] of the states (N*L, D) and lies in sequence Sequences[i]. Both are
// int32 (M).
type Places struct {
	Rows, Sequences *gorgonia.Node
	// Whole is the number of each place among those of the global batch, int32 (M), where this process is one of
	// several; nil: its own.
	Whole *gorgonia.Node
}

// of returns the states at the places: (M, D) for x (N*L, D).
func (p *Places) of(x *gorgonia.Node) *gorgonia.Node { return nn.GatherRows(x, p.Rows, 1) }

// each returns for each place the value that its sequence has in v (N) int32; nil for nil.
func (p *Places) each(v *gorgonia.Node) *gorgonia.Node {
	if v == nil {
		return nil
	}
	return layout.GatherInts(v, p.Sequences)
}
