package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// PairNet is the form mlp of a metric: what a network of one hidden layer adds to the product of a pair,
//
//	f(x, y) = v^T relu( A (x o y) + B (x - y)^2 + b )
//
// with o and the square by channel, A and B (H, C), b and v (H). v starts at 0, so that a pair starts with its
// product. There is nothing to fold: scores of N x M pairs are N x M passes of the network.
type PairNet struct {
	Product, Difference, Bias, Out *gorgonia.Node // A, B, b, v
}

// Net returns the network of the similarity, nil for other forms.
func (m Metric) Net(s Scope) *PairNet {
	if m.Form != MetricMLP {
		return nil
	}
	s = m.scope(s)
	start := LinearDefault(2 * m.Dim)
	param := func(name string, init Init, shape ...int) *gorgonia.Node {
		return s.Param(metricPath(SimilaritySite)+name, init, shape...)
	}
	return &PairNet{
		Product:    param("hidden/product", start, m.Hidden, m.Dim),
		Difference: param("hidden/difference", start, m.Hidden, m.Dim), Bias: param("hidden/bias", start, m.Hidden),
		Out: param("output/weight", Zeros, m.Hidden),
	}
}

// Pairs returns what the network adds for images x (N, C) and texts y (M, C): (N, M). As
//
//	(x - y)^2 = x^2 + y^2 - 2 x o y
//
// it is a layer A - 2B over the products of channels, to which an image and a text add B x^2 and B y^2 + b.
func (p *PairNet) Pairs(x, y *gorgonia.Node) *gorgonia.Node {
	return similarity.PairNet(similarity.PairNetArgs{
		X: x, Y: y, A: arith.Combine([]float32{1, -2}, p.Product, p.Difference), // (H, C)
		U: nn.Linear(arith.Square(x), p.Difference, nil),    // (N, H)
		T: nn.Linear(arith.Square(y), p.Difference, p.Bias), // (M, H)
		V: p.Out,
	})
}
