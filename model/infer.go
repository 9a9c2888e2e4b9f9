package model

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// evalGraphs are the compiled inference graphs, one per task and batch size.
type evalGraphs struct {
	images map[int]*imageGraph
	texts  map[int]*textGraph
	pairs  map[[2]int]*pairGraph
}

type imageGraph struct {
	machine            *exec.Machine
	in, states, pooled *gorgonia.Node
}

type textGraph struct {
	machine                      *exec.Machine
	ids, lengths, states, pooled *gorgonia.Node
}

type pairGraph struct {
	machine                                *exec.Machine
	states, lengths, images, index, logits *gorgonia.Node
}

// ImageTokens returns T, the tokens that an encoded image has.
func (m *ALBEF) ImageTokens() int { return m.vit.Tokens() }

// ImageWidth returns the width of an image token.
func (m *ALBEF) ImageWidth() int { return m.vit.Width }

// TextTokens returns L, the token places of a text.
func (m *ALBEF) TextTokens() int { return m.cfg.Data.Tokens }

// TextWidth returns the width of a text token.
func (m *ALBEF) TextWidth() int { return m.bert.Width }

// PairScore returns the score by which features of images and texts are compared, of
// eval.score. It reads the learned metric, if there is one, from the parameters.
func (m *ALBEF) PairScore() scoring.Score { return pairScore(m.cfg, m.params) }

// Dim returns C, the channels of the shared space.
func (m *ALBEF) Dim() int { return m.head.Dim }

// HasMatching says whether the model has the fusion encoder's match head.
func (m *ALBEF) HasMatching() bool {
	_, ok := m.params.Get("itm_head/weight")
	return ok
}

// EncodeImages runs the vision tower over n images (n, 3, size, size). It returns
// their token states (n*T, D) and features (n, C), which the next call
// overwrites.
func (m *ALBEF) EncodeImages(images []float32, n int) (states, features []float32, err error) {
	g, err := m.imageGraph(n)
	if err != nil {
		return nil, nil, err
	}
	if err := g.machine.SetInput(g.in, images); err != nil {
		return nil, nil, err
	}
	return run2(g.machine, g.states, g.pooled)
}

// EncodeTexts runs the text layers over n texts: ids (n, L), lengths (n). It
// returns their token states (n*L, D) and features (n, C), which the next call
// overwrites.
func (m *ALBEF) EncodeTexts(ids, lengths []int32, n int) (states, features []float32, err error) {
	g, err := m.textGraph(n)
	if err != nil {
		return nil, nil, err
	}
	if err := g.machine.SetInput(g.ids, ids); err != nil {
		return nil, nil, err
	}
	if err := g.machine.SetInput(g.lengths, lengths); err != nil {
		return nil, nil, err
	}
	return run2(g.machine, g.states, g.pooled)
}

// Match scores n pairs with the fusion encoder: text states (n*L, D) with lengths
// (n), and for each the index of its image among the token states of k images
// (k*T, D). The score is the raw logit of class match (1.10.5). The result is
// overwritten by the next call.
func (m *ALBEF) Match(states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error) {
	g, err := m.pairGraph(n, k)
	if err != nil {
		return nil, err
	}
	for _, in := range []struct {
		n *gorgonia.Node
		v any
	}{{g.states, states}, {g.lengths, lengths}, {g.index, index}, {g.images, images}} {
		if err := g.machine.SetInput(in.n, in.v); err != nil {
			return nil, err
		}
	}
	if err := g.machine.RunAll(); err != nil {
		return nil, err
	}
	a, err := g.machine.Value(g.logits)
	if err != nil {
		return nil, err
	}
	for i := range n { // keep class 1
		a.F32[i] = a.F32[2*i+1]
	}
	return a.F32[:n], nil
}

func run2(m *exec.Machine, a, b *gorgonia.Node) (x, y []float32, err error) {
	if err := m.RunAll(); err != nil {
		return nil, nil, err
	}
	va, err := m.Value(a)
	if err != nil {
		return nil, nil, err
	}
	vb, err := m.Value(b)
	return va.F32, vb.F32, err
}

func (m *ALBEF) inference() *evalGraphs {
	if m.eval == nil {
		m.eval = &evalGraphs{images: map[int]*imageGraph{}, texts: map[int]*textGraph{}, pairs: map[[2]int]*pairGraph{}}
	}
	return m.eval
}

func (m *ALBEF) imageGraph(n int) (g *imageGraph, err error) {
	if g := m.inference().images[n]; g != nil {
		return g, nil
	}
	defer ops.Catch(&err)
	b := m.newGraph()
	on := encoders.NewScope(b.params)
	g = &imageGraph{in: b.floats("images", n, 3, m.vit.Size, m.vit.Size)}
	var classes *gorgonia.Node
	g.states, classes = m.vit.Encode(on.In("image"), g.in)
	g.pooled = m.head.Forward(on.In("image_proj"), classes, m.head.Classes())
	if g.machine, err = m.compileEval(b, g.states, g.pooled); err != nil {
		return nil, err
	}
	m.eval.images[n] = g
	return g, nil
}

func (m *ALBEF) textGraph(n int) (g *textGraph, err error) {
	if g := m.inference().texts[n]; g != nil {
		return g, nil
	}
	defer ops.Catch(&err)
	l := m.cfg.Data.Tokens
	b := m.newGraph()
	on := encoders.NewScope(b.params)
	g = &textGraph{ids: b.ints("text", n*l), lengths: b.ints("lengths", n)}
	var classes *gorgonia.Node
	g.states, classes = m.bert.TextClasses(&encoders.Context{}, on.In("text"), g.ids, g.lengths, l, true)
	g.pooled = m.head.Forward(on.In("text_proj"), classes, m.head.Classes())
	if g.machine, err = m.compileEval(b, g.states, g.pooled); err != nil {
		return nil, err
	}
	m.eval.texts[n] = g
	return g, nil
}

func (m *ALBEF) pairGraph(n, k int) (g *pairGraph, err error) {
	if g := m.inference().pairs[[2]int{n, k}]; g != nil {
		return g, nil
	}
	if !m.HasMatching() {
		return nil, fmt.Errorf("model: no match head: it was trained with objective.itm.weight = 0, so set eval.rerank_top = 0")
	}
	defer ops.Catch(&err)
	l, t := m.cfg.Data.Tokens, m.vit.Tokens()
	b := m.newGraph()
	on := encoders.NewScope(b.params)
	g = &pairGraph{
		states: b.floats("text states", n*l, m.bert.Width), lengths: b.ints("lengths", n),
		images: b.floats("image states", k*t, m.vit.Width), index: b.ints("image of pair", n),
	}
	first := &encoders.Places{Rows: b.ints("first tokens", n), Sequences: b.ints("pairs", n)}
	fused := m.bert.Fusion(&encoders.Context{}, on.In("text"), g.states, g.lengths, g.images,
		encoders.Pairs{Images: g.index}, first, l, t) // (n, D)
	g.logits = encoders.Classifier{Classes: 2}.Forward(on.In("itm_head"), fused, 1)
	if g.machine, err = m.compileEval(b, g.logits); err != nil {
		return nil, err
	}
	if err := g.machine.SetInput(first.Rows, iota32(0, n, l)); err != nil {
		return nil, err
	}
	if err := g.machine.SetInput(first.Sequences, iota32(0, n, 1)); err != nil {
		return nil, err
	}
	m.eval.pairs[[2]int{n, k}] = g
	return g, nil
}

// compileEval compiles an inference graph and binds the parameters.
func (m *ALBEF) compileEval(b *graph, outputs ...*gorgonia.Node) (*exec.Machine, error) {
	machine, err := exec.Compile(b.g, exec.Config{Engine: m.engine, Outputs: outputs})
	if err != nil {
		return nil, err
	}
	b.params.each(func(_ *Param, n *gorgonia.Node, mem []float32) {
		if err == nil {
			err = machine.SetInput(n, mem)
		}
	})
	return machine, err
}

// ImageSize returns the side of the model's images in pixels.
func (m *ALBEF) ImageSize() int { return m.vit.Size }

// ImageGrid returns the number of patches along a side of an image.
func (m *ALBEF) ImageGrid() int { return m.vit.Size / m.vit.Patch }

// Vocab returns V, the size of the vocabulary.
func (m *ALBEF) Vocab() int { return m.bert.Vocab }
