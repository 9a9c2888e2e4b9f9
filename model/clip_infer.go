package model

import (
	"errors"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// clipEval are the compiled inference graphs by the number of images or texts.
type clipEval struct {
	images map[int]*imageGraph
	texts  map[int]*textGraph
}

// EncodeImages runs the vision tower over n images (n, 3, size, size). It returns their
// token states (n*T, D), the first class token and the patches, and features (n, C). The
// next call with the same n overwrites both. A graph is kept for every n: call it with
// few different ones.
func (m *CLIP) EncodeImages(images []float32, n int) (states, features []float32, err error) {
	g, err := m.imageGraph(n)
	if err != nil {
		return nil, nil, err
	}
	if err := g.machine.SetInput(g.in, images); err != nil {
		return nil, nil, err
	}
	return run2(g.machine, g.states, g.pooled)
}

// EncodeTexts runs the text tower over n texts: ids (n, L), lengths (n). It returns their
// token states (n*L, D), the first class token and the words, and features (n, C), as
// EncodeImages does.
func (m *CLIP) EncodeTexts(ids, lengths []int32, n int) (states, features []float32, err error) {
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

// PairScore is the score by which features of images and texts are compared, with the
// parameters as they are now.
func (m *CLIP) PairScore() scoring.Score { return pairScore(m.cfg, m.params) }

// Match fails: a dual encoder has no match head.
func (m *CLIP) Match([]float32, []int32, []int32, []float32, int, int) ([]float32, error) {
	return nil, errors.New(`model: model.system "clip" has no match head: set eval.rerank_top = 0`)
}

// HasMatching is false: pairs are compared by their features alone.
func (m *CLIP) HasMatching() bool { return false }

func (m *CLIP) imageGraph(n int) (g *imageGraph, err error) {
	if g := m.eval.images[n]; g != nil {
		return g, nil
	}
	defer ops.Catch(&err)
	b := newGraph(m.params)
	s := encoders.NewScope(b.params)
	g = &imageGraph{in: b.floats("images", n, 3, m.vit.Size, m.vit.Size)}
	var classes *gorgonia.Node // (n*m, D)
	g.states, classes = m.vit.Encode(s.In("image"), g.in)
	g.pooled = m.head.Forward(s.In("image_proj"), classes, m.head.Classes())
	if g.machine, err = m.compileEval(b, g.states, g.pooled); err != nil {
		return nil, err
	}
	m.eval.images[n] = g
	return g, nil
}

func (m *CLIP) textGraph(n int) (g *textGraph, err error) {
	if g := m.eval.texts[n]; g != nil {
		return g, nil
	}
	defer ops.Catch(&err)
	l := m.cfg.Data.Tokens
	b := newGraph(m.params)
	s := encoders.NewScope(b.params)
	g = &textGraph{ids: b.ints("text", n*l), lengths: b.ints("lengths", n)}
	var classes *gorgonia.Node // (n*m, D)
	g.states, classes = m.bert.TextClasses(&encoders.Context{}, s.In("text"), g.ids, g.lengths, l, true)
	g.pooled = m.head.Forward(s.In("text_proj"), classes, m.head.Classes())
	if g.machine, err = m.compileEval(b, g.states, g.pooled); err != nil {
		return nil, err
	}
	m.eval.texts[n] = g
	return g, nil
}

// compileEval compiles an inference graph and binds the parameters.
func (m *CLIP) compileEval(b *graph, outputs ...*gorgonia.Node) (*exec.Machine, error) {
	machine, err := exec.Compile(b.g, exec.Config{Engine: m.engine, Outputs: outputs})
	if err != nil {
		return nil, err
	}
	return machine, b.bindParams(machine)
}

// ImageSize returns the side of the model's images in pixels.
func (m *CLIP) ImageSize() int { return m.vit.Size }

// ImageGrid returns the number of patches along a side of an image.
func (m *CLIP) ImageGrid() int { return m.vit.Size / m.vit.Patch }

// ImageTokens returns T, the tokens that an encoded image has.
func (m *CLIP) ImageTokens() int { return m.vit.Tokens() }

// ImageWidth returns the width of an image token.
func (m *CLIP) ImageWidth() int { return m.vit.Width }

// TextTokens returns L, the token places of a text.
func (m *CLIP) TextTokens() int { return m.cfg.Data.Tokens }

// TextWidth returns the width of a text token.
func (m *CLIP) TextWidth() int { return m.bert.Width }

// Dim returns C, the channels of the shared space.
func (m *CLIP) Dim() int { return m.head.Dim }

// Vocab returns V, the size of the vocabulary.
func (m *CLIP) Vocab() int { return m.bert.Vocab }
