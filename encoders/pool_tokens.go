package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/recurrent"
	"gorgonia.org/gorgonia"
)

// of pools the first lengths (R) int32 of every l tokens x (R*l, D): (R, D). Parameters are those of s below pool/.
func (p Pool) of(s Scope, x, lengths *gorgonia.Node, l int) *gorgonia.Node {
	switch p {
	case PoolMean:
		return nn.MeanTokens(x, lengths, l, 0)
	case PoolWeighted:
		return nn.SoftPool(x, nn.LogPlaces(lengths, l, columns("pool", x)), lengths, l)
	case PoolMax:
		return nn.MaxTokens(x, lengths, l)
	case PoolGPO:
		return nn.SortPool(x, gpoScores(s.In("pool"), lengths, l), lengths, l, gpoTemperature)
	case PoolESA: // Zhu et al. 2023
		d := columns("pool", x)
		return nn.SoftPool(x, linear(s, "pool", xavier(d), x, d), lengths, l)
	case PoolGRU:
		d := columns("pool", x)
		states := gruUnit(s.In("pool"), x, lengths, l, d, false)
		return recurrent.Last(states, lengths, l, false)
	}
	misuse("pool", x, "must be mean, max, gpo, esa or gru (got %q)", p)
	return nil
}

// esaViews are two masked views of sequences of l tokens x (n*l, D), pooled as PoolESA pools all of them, (n, D) each
// (Zhu et al. 2023).
func esaViews(c *Context, s Scope, x *gorgonia.Node, l int) (first, second *gorgonia.Node) {
	d := columns("pool", x)
	scores := linear(s, "pool", xavier(d), x, d)
	rows, lengths := c.Masks(x.Shape()[0]/l, l)
	view := func(i int) *gorgonia.Node {
		return nn.SoftPool(nn.GatherRows(x, rows[i], 1), nn.GatherRows(scores, rows[i], 1), lengths[i], l)
	}
	return view(0), view(1)
}

// Sizes of the generalised pooling operator, those of VSE-infinity.
const (
	gpoPositions   = 32 // channels of a position
	gpoHidden      = 32 // of a state of each direction
	gpoTemperature = 0.1
)

// gpoScores are the scores of the ranks of R sequences, (R*l, 1), which their lengths alone decide (Chen et al. 2021,
// section 3.3): recurrent units in both directions, averaged, over positions, and a linear layer without a bias.
func gpoScores(s Scope, lengths *gorgonia.Node, l int) *gorgonia.Node {
	positions := nn.Sinusoids(lengths, l, gpoPositions) // (R*l, 32)
	unit := func(name string, reverse bool) *gorgonia.Node {
		return gruUnit(s.In(name), positions, lengths, l, gpoHidden, reverse)
	}
	states := arith.Combine([]float32{.5, .5}, unit("forward", false), unit("reverse", true)) // (R*l, 32)
	return linearNoBias(s, "scores", torchLinear, states, 1)
}
