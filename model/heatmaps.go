package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// HeatOf is where heat maps of pairs are read: with Match in the attention of the words to the patches in a fusion
// layer, by the logit of the match head, else in the attention of the image's class token in a block of the image
// tower, by the score of the features. Layer counts from 0.
type HeatOf struct {
	Match bool
	Layer int
}

// heating is a compiled computation of scores with the attention of one layer and the gradients to what its heads
// gather. Queries, keys and values are rows [q | k | v] or apart.
type heating struct {
	machine                   *exec.Machine
	inputs                    *feed.Inputs
	q, kv, qkv, gathered, dos *gorgonia.Node
	lengths                   *gorgonia.Node // (n) int32, of Match
	heads, d                  int
	l, t                      int // queries and keys of a row of the batch
	p                         int // of the keys the last ones, which are patches
}

// heatKey is what heat maps are compiled for.
type heatKey struct {
	of   HeatOf
	rows int
}

// HeatMaps returns for each of the n pairs in b (Encoder.Columns of both sides) what its P patches say for it, (n, P),
// by the attention A and the gradient of the score s to it, as ALBEF's weakly supervised grounding does:
//
//	H_p = 1/L sum_{l < length} 1/H sum_h A_hlp max(0, ds/dA_hlp)
//
// over H heads and the L = data.tokens places of a text, the first of which is [CLS]; without Match over the class token
// alone. (ALBEF's code divides by the longest text of the batch, and the cosine by the temperature, factors that all
// patches share.) A computation is kept for every number of rows: call it with few different ones. It ends early with the
// error of ctx.
func (p *Pairs) HeatMaps(ctx context.Context, b *batch.Batch, of HeatOf) ([]float32, error) {
	x, err := p.heating(heatKey{of, b.Rows()})
	if err != nil {
		return nil, err
	}
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, err
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	out := make([]float32, b.Rows()*x.p)
	return out, x.read(p, b.Rows(), out)
}

// CheckHeat refuses heat maps that the model has none of.
func (p *Pairs) CheckHeat(of HeatOf) error {
	n, what, why := p.layers(&p.design.image), "block of the image tower", "its image tower has no class token that attends to patches"
	if _, ok := p.design.image.tower.(encoders.ImageTower); ok && p.imageHasClass() && p.design.interaction == nil && !p.design.views {
		why = ""
	}
	if of.Match {
		n, what, why = p.blocks().Fusion, "fusion layer", "it has no match head"
		if p.HasMatching() {
			why = ""
		}
	}
	if why != "" {
		return fmt.Errorf("model: model.system %q has no heat maps of this mode: %s", p.cfg.Model.System, why)
	}
	if of.Layer < 0 || of.Layer >= n {
		return fmt.Errorf("model: there is no %s %d: the model has %d, from 0 on", what, of.Layer, n)
	}
	return nil
}

// imageHasClass says whether an image has one class token that its head reads.
func (p *Pairs) imageHasClass() bool {
	t, ok := p.design.image.tower.(encoders.ImageTower)
	return ok && (t.Pool == "" || t.Pool == encoders.PoolClass) && !t.NoClass && t.ViT.Classes <= 1
}

// heating returns the computation of a key, built when it is first asked for.
func (p *Pairs) heating(key heatKey) (x *heating, err error) {
	if x := p.heatings[key]; x != nil {
		return x, nil
	}
	if key.rows < 1 {
		return nil, fmt.Errorf("model: a batch of pairs has no rows")
	}
	if err := p.CheckHeat(key.of); err != nil {
		return nil, err
	}
	defer op.Catch(&err)
	n := newNet(p.params)
	x = &heating{inputs: n.inputs}
	on := encoders.NewScope(n.params).As(encoders.Traits{Twin: p.design.teacher})
	var score *gorgonia.Node
	if key.of.Match {
		score = x.match(p, n, on, key)
	} else {
		score = x.features(p, n, on, key)
	}
	one := n.g.AddNode(gorgonia.NewConstant(float32(1)))
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{score}, gorgonia.Nodes{one}, gorgonia.Nodes{x.gathered})
	if err != nil {
		return nil, fmt.Errorf("model: differentiating the score: %w", err)
	}
	x.dos = grads[0]
	ask := gorgonia.Nodes{score, x.dos}
	for _, n := range []*gorgonia.Node{x.q, x.kv, x.qkv, x.lengths} {
		if n != nil {
			ask = append(ask, n)
		}
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

// match builds the sum of the match logits of all pairs.
func (x *heating) match(p *Pairs, n *net, on encoders.Scope, key heatKey) *gorgonia.Node {
	d := &p.design
	all := encoders.Want{Tokens: true}
	image := d.image.tower.Encode(&encoders.Context{}, p.image.scope(on.In(d.image.name)), n.towerInputs(d.image.tower, key.rows, nil), all)
	text := d.text.tower.Encode(&encoders.Context{}, p.text.scope(on.In(d.text.name)), n.towerInputs(d.text.tower, key.rows, nil), all)
	tap := encoders.Tap{Cross: func(i int, q, kv, gathered *gorgonia.Node) {
		if i == key.of.Layer {
			x.q, x.kv, x.gathered = q, kv, gathered
		}
	}}
	fused := d.fusion.Fusion(&encoders.Context{}, tuned(p.cfg.Model, on.In(d.text.name), &encoders.Context{}).Tapped(tap), encoders.FusionArgs{
		Texts: text.Tokens, Lengths: text.Lengths, Images: image.Tokens, TextLen: text.Len, ImageLen: image.Len,
	}) // (n*L, D)
	x.lengths = text.Lengths
	x.heads, x.d, x.l, x.t, x.p = d.fusion.Heads, d.fusion.Width, text.Len, image.Len, parts(d.image.tower)
	logits := objectives.MatchLogits(encoders.NewScope(n.params), layout.StridedRows(fused, 0, text.Len, key.rows)) // (n, 2)
	return arith.Sum(layout.StridedRows(layout.Reshape(logits, 2*key.rows, 1), 1, 2, key.rows))
}

// features builds the sum of the scores of all pairs.
func (x *heating) features(p *Pairs, n *net, on encoders.Scope, key heatKey) *gorgonia.Node {
	features := func(e *Encoder, tap encoders.Tap) *gorgonia.Node {
		s := e.side
		// With all tokens wanted every block computes the queries of all.
		q := s.tower.Encode(&encoders.Context{}, e.scope(on.In(s.name)).Tapped(tap), n.towerInputs(s.tower, key.rows, s.column), encoders.Want{Tokens: true, Classes: true})
		return s.head.Project(&encoders.Context{}, on.In(s.proj), q.Classes) // (n, C)
	}
	f := features(p.image, encoders.Tap{Self: func(i int, qkv, gathered *gorgonia.Node, t int) {
		if i == key.of.Layer {
			x.qkv, x.gathered, x.t = qkv, gathered, t
		}
	}})
	x.heads, x.d, x.l, x.p = p.cfg.Model.Image.Heads, p.image.Width(), 1, parts(p.design.image.tower)
	scores := p.hostScore(encoders.NewScope(n.params)).Pairs(f, features(p.text, encoders.Tap{})) // (n, n)
	return arith.Sum(layout.StridedRows(layout.Reshape(scores, key.rows*key.rows, 1), 0, key.rows+1, key.rows))
}

// read writes the maps (n, P) of the last run.
func (x *heating) read(p *Pairs, n int, out []float32) error {
	var err error
	value := func(n *gorgonia.Node) []float32 {
		if n == nil || err != nil {
			return nil
		}
		a, e := x.machine.Value(n)
		err = e
		return a.F32
	}
	dos, q, kv, qkv := value(x.dos), value(x.q), value(x.kv), value(x.qkv)
	var lengths []int32
	if x.lengths != nil && err == nil {
		a, e := x.machine.Value(x.lengths)
		lengths, err = a.I32, e
	}
	if err != nil {
		return err
	}
	d := x.d
	p.engine.For(n, 1, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			a := explain.Attention{H: x.heads, L: x.l, T: x.t, D: d}
			if qkv != nil { // of the t tokens of a row the first is the class token
				rows := qkv[r*x.t*3*d:][:x.t*3*d]
				a.Queries, a.Grad, a.KeyValues = rows[:d], dos[r*x.t*d:][:d], make([]float32, 0, x.t*2*d)
				for t := range x.t {
					a.KeyValues = append(a.KeyValues, rows[(3*t+1)*d:][:2*d]...)
				}
			} else {
				a.L = int(lengths[r]) // padding counts nothing
				a.Queries, a.Grad, a.KeyValues = q[r*x.l*d:][:a.L*d], dos[r*x.l*d:][:a.L*d], kv[r*x.t*2*d:][:x.t*2*d]
			}
			to := out[r*x.p:][:x.p]
			for i, v := range a.Relevance() {
				if k := i%x.t - (x.t - x.p); k >= 0 {
					to[k] += float32(v / float64(x.l))
				}
			}
		}
	})
	return nil
}
