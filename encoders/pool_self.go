package encoders

import (
	"math"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// SelfPool makes one vector of local features x_t by their likeness to their mean m (SGRAF, Diao et
// al. 2021, section 3.1, as in the published code):
//
//	h_t = tanh(local(x_t)),  g = tanh(global(m)),  p = softmax_t(sum_c common_c h_tc g_c)
//	v   = unit(sum_t p_t x_t)
//
// Parameters are local/weight, local/bias, global/weight, global/bias and common (C).
type SelfPool struct{ Dropout float64 } // of h and g

// Forward pools the tokens of each of R rows: (R, C). It is 0 of a row without tokens.
func (p SelfPool) Forward(c *Context, s Scope, x Local) *gorgonia.Node {
	rows, lengths, l, d := x.Rows, x.Lengths, x.Len, columns("self pool", x.Rows)
	if c.given(rows.Shape()[0], l); x.All {
		defer c.Whole()()
	}
	if lengths != nil {
		lengths = layout.AtLeastInt(layout.AddInt(lengths, -x.First), 0)
	}
	if x.First > 0 {
		rows, l = layout.SequenceRest(rows, l, 0, x.First), l-x.First
	}
	h := p.hidden(c, s, "local", rows)                                // (R*l, C)
	g := p.hidden(c, s, "global", nn.MeanTokens(rows, lengths, l, 0)) // (R, C)
	weight, _ := xavier(1)(d)
	// attention divides by that
	q := arith.Combine([]float32{float32(math.Sqrt(float64(d)))}, nn.ScaleColumns(g, s.Param("common", weight, d)))
	pooled := attention.CrossAttention(attention.CrossArgs{
		Q: q, KV: layout.ConcatColumns(h, rows), Lengths: lengths, QueryLen: 1, KeyLen: l, Heads: 1, Keep: 1,
	}) // (R, C)
	return nn.L2Normalize(pooled, normEps)
}

// hidden maps rows (N, C) to (N, C). The published pool of images has a batch norm before the tanh.
func (p SelfPool) hidden(c *Context, s Scope, name string, x *gorgonia.Node) *gorgonia.Node {
	d := columns(name, x)
	return c.dropout(nn.Tanh(linear(s, name, xavier(d), x, d)), p.Dropout)
}

// XavierLayer returns the parameters name/weight (out, in) and name/bias (out) of a linear layer, of
// which the first starts uniform within sqrt(6/(in+out)) and the second at 0.
func XavierLayer(s Scope, name string, in, out int) (weight, bias *gorgonia.Node) {
	return XavierWeight(s, name, in, out), s.In(name).bias(Zeros, out)
}

// XavierWeight is the weight of XavierLayer alone.
func XavierWeight(s Scope, name string, in, out int) *gorgonia.Node {
	weight, _ := xavier(out)(in)
	return s.In(name).Param("weight", weight, out, in)
}
