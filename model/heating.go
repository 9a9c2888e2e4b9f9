package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// heating is a compiled computation of scores of the n rows of a batch, with what heat maps of their pictures are made of: the
// attention to each picture, or the tokens of an image tower, and the gradient of the scores to it.
type heating struct {
	machine *exec.Machine
	inputs  *feed.Inputs
	score   *gorgonia.Node // the sum over the rows, each of which has a score of its own
	p       int            // patches of a picture, the last ones of its tokens

	looks    []*look // of each picture
	heads, d int
	lengths  *gorgonia.Node // (n) int32, queries of a row that count where it has several

	tokens tapped // (n*t, D) in the place of looks
	t      int

	chosen []float32 // (n, k) inputs of JudgedMaps
	text   *writtenText
}

// look is the attention of rows to a picture: of l queries each (n*l, D) to keys and values (N*t, 2D), rows [k | v], or with qkv,
// rows [q | k | v] (n*t, 3D), of the first of t tokens to all of them.
type look struct {
	q, kv, qkv     *gorgonia.Node
	gathered, grad *gorgonia.Node // what the heads gather, (n*l, D) or (n*t, D)
	l, t           int
	from           int // the sequence of keys of row 0
}

// heatKey is what heat maps are compiled for.
type heatKey struct {
	score string // pair, judged or written
	of    HeatOf // of a pair
	rows  int
	len   int // tokens that are read of a written text
}

// heating returns the computation of a key, built when it is first asked for. build returns the sum of the scores, and says in x
// what the maps are made of.
func (p *Pairs) heating(key heatKey, build func(x *heating, n *net, on encoders.Scope) *gorgonia.Node) (x *heating, err error) {
	if x := p.heatings[key]; x != nil {
		return x, nil
	}
	if key.rows < 1 {
		return nil, fmt.Errorf("model: a batch to draw heat maps of has no rows")
	}
	defer op.Catch(&err)
	n := newNet(p.params)
	x = &heating{inputs: n.inputs, p: parts(p.design.image.tower)}
	x.score = build(x, n, encoders.NewScope(n.params).As(encoders.Traits{Twin: p.design.teacher}))
	ask, err := x.differentiate()
	if err != nil {
		return nil, err
	}
	if x.machine, err = n.compileEval(exec.Config{Engine: p.engine}, ask...); err != nil {
		return nil, err
	}
	if p.heatings == nil {
		p.heatings = map[heatKey]*heating{}
	}
	p.heatings[key] = x
	return x, nil
}

// see notes the attention q (n*l, D) of n rows to their picture k, whose keys and values are kv, of sequences of t.
func (x *heating) see(q, kv, gathered *gorgonia.Node, n, k, t int) {
	x.looks = append(x.looks, &look{q: q, kv: kv, gathered: gathered, l: q.Shape()[0] / n, t: t, from: k * n})
}

// differentiate adds the gradients of the score, and returns what is to be computed.
func (x *heating) differentiate() (ask gorgonia.Nodes, err error) {
	var wrt gorgonia.Nodes
	var to []**gorgonia.Node
	for _, l := range x.looks {
		wrt, to = append(wrt, l.gathered), append(to, &l.grad)
		ask = append(ask, l.q, l.kv, l.qkv)
	}
	if x.tokens.node != nil {
		wrt, to = append(wrt, x.tokens.node), append(to, &x.tokens.grad)
	}
	one := x.score.Graph().AddNode(gorgonia.NewConstant(float32(1)))
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{x.score}, gorgonia.Nodes{one}, wrt)
	if err != nil {
		return nil, fmt.Errorf("model: differentiating the score: %w", err)
	}
	for i, g := range grads {
		*to[i] = g
	}
	all := append(gorgonia.Nodes{x.score, x.lengths, x.tokens.node}, append(ask, grads...)...)
	ask = nil
	for _, n := range all {
		if n != nil {
			ask = append(ask, n)
		}
	}
	return ask, nil
}

// maps computes those of the rows of b: (n, pictures, P).
func (x *heating) maps(ctx context.Context, p *Pairs, b *batch.Batch) ([]float32, error) {
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, err
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	pictures := max(1, len(x.looks))
	out := make([]float32, b.Rows()*pictures*x.p)
	if x.tokens.node != nil {
		return out, x.readTokens(p, b.Rows(), out)
	}
	var lengths []int32
	if x.lengths != nil {
		a, err := x.machine.Value(x.lengths)
		if err != nil {
			return nil, err
		}
		lengths = a.I32
	}
	for k, l := range x.looks {
		if err := x.read(p, l, lengths, b.Rows(), out[k*x.p:], pictures*x.p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read writes the maps of n rows by their attention to a picture, one each stride values of out.
func (x *heating) read(p *Pairs, of *look, lengths []int32, n int, out []float32, stride int) error {
	var err error
	value := func(n *gorgonia.Node) []float32 {
		if n == nil || err != nil {
			return nil
		}
		a, e := x.machine.Value(n)
		err = e
		return a.F32
	}
	grad, q, kv, qkv := value(of.grad), value(of.q), value(of.kv), value(of.qkv)
	if err != nil {
		return err
	}
	d := x.d
	p.engine.For(n, 1, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			a := explain.Attention{H: x.heads, L: of.l, T: of.t, D: d}
			if qkv != nil { // of the t tokens of a row the first is the class token
				rows := qkv[r*of.t*3*d:][:of.t*3*d]
				a.Queries, a.Grad, a.KeyValues = rows[:d], grad[r*of.t*d:][:d], make([]float32, 0, of.t*2*d)
				for t := range of.t {
					a.KeyValues = append(a.KeyValues, rows[(3*t+1)*d:][:2*d]...)
				}
			} else {
				a.L = min(a.L, int(lengths[r])) // padding counts nothing
				a.Queries, a.Grad, a.KeyValues = q[r*of.l*d:][:a.L*d], grad[r*of.l*d:][:a.L*d], kv[(of.from+r)*of.t*2*d:][:of.t*2*d]
			}
			to := out[r*stride:][:x.p]
			for i, v := range a.Relevance() {
				if k := i%of.t - (of.t - x.p); k >= 0 {
					to[k] += float32(v / float64(of.l))
				}
			}
		}
	})
	return nil
}

// readTokens writes the maps of n rows by the tokens of their picture, of which those below 0 are 0: (n, P).
func (x *heating) readTokens(p *Pairs, n int, out []float32) error {
	values, err := x.machine.Value(x.tokens.node)
	if err != nil {
		return err
	}
	grads, err := x.machine.Value(x.tokens.grad)
	if err != nil {
		return err
	}
	d := values.Dim(1)
	p.engine.For(n, 1, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			at := ((r+1)*x.t - x.p) * d
			for k, v := range explain.Elementwise(values.F32[at:], grads.F32[at:], x.p, d) {
				out[r*x.p+k] = float32(max(v, 0))
			}
		}
	})
	return nil
}
