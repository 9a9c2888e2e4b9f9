package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// dual is what models of an image and a text tower have in common: the towers, their
// heads, and features for inference.
type dual struct {
	cfg    config.Config
	engine *kernel.Engine
	params *Params

	vit  encoders.ViT
	bert encoders.BERT
	head encoders.Projection // of both towers, with parameters of their own

	images map[int]*imageGraph // for inference, by the number of images
	texts  map[int]*textGraph
}

type imageGraph struct {
	machine            *exec.Machine
	in, states, pooled *gorgonia.Node
}

type textGraph struct {
	machine                      *exec.Machine
	ids, lengths, states, pooled *gorgonia.Node
}

// newHead is the head of both towers.
func newHead(cfg config.Config) encoders.Projection {
	space, _ := cfg.Model.Head.Space()
	return encoders.Projection{Dim: cfg.Model.Head.Dim, Spheres: space.Spheres, Tokens: space.Tokens, Euclid: space.Euclid}
}

// EncodeImages runs the vision tower over n images (n, 3, size, size). It returns their
// token states (n*T, D), the first class token and the patches, and features (n, C). The
// next call with the same n overwrites both. A graph is kept for every n: call it with
// few different ones.
func (m *dual) EncodeImages(images []float32, n int) (states, features []float32, err error) {
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
func (m *dual) EncodeTexts(ids, lengths []int32, n int) (states, features []float32, err error) {
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

// PairScore is the score by which features of images and texts are compared, that of
// eval.score with the parameters as they are now.
func (m *dual) PairScore() scoring.Score { return pairScore(m.cfg, m.params) }

func (m *dual) imageGraph(n int) (g *imageGraph, err error) {
	if g := m.images[n]; g != nil {
		return g, nil
	}
	defer op.Catch(&err)
	b := newGraph(m.params)
	s := encoders.NewScope(b.params)
	g = &imageGraph{in: b.floats("images", n, 3, m.vit.Size, m.vit.Size)}
	var classes *gorgonia.Node // (n*m, D)
	g.states, classes = m.vit.Encode(s.In("image"), g.in)
	g.pooled = m.head.Forward(s.In("image_proj"), classes, m.head.Classes())
	if g.machine, err = m.compileEval(b, g.states, g.pooled); err != nil {
		return nil, err
	}
	if m.images == nil {
		m.images = map[int]*imageGraph{}
	}
	m.images[n] = g
	return g, nil
}

func (m *dual) textGraph(n int) (g *textGraph, err error) {
	if g := m.texts[n]; g != nil {
		return g, nil
	}
	defer op.Catch(&err)
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
	if m.texts == nil {
		m.texts = map[int]*textGraph{}
	}
	m.texts[n] = g
	return g, nil
}

// compileEval compiles an inference graph and binds the parameters.
func (m *dual) compileEval(b *graph, outputs ...*gorgonia.Node) (*exec.Machine, error) {
	machine, err := exec.Compile(b.g, exec.Config{Engine: m.engine, Outputs: outputs})
	if err != nil {
		return nil, err
	}
	return machine, b.bindParams(machine)
}

// ImageSize returns the side of the model's images in pixels.
func (m *dual) ImageSize() int { return m.vit.Size }

// ImageGrid returns the number of patches along a side of an image.
func (m *dual) ImageGrid() int { return m.vit.Size / m.vit.Patch }

// ImageTokens returns T, the tokens that an encoded image has.
func (m *dual) ImageTokens() int { return m.vit.Tokens() }

// ImageWidth returns the width of an image token.
func (m *dual) ImageWidth() int { return m.vit.Width }

// TextTokens returns L, the token places of a text.
func (m *dual) TextTokens() int { return m.cfg.Data.Tokens }

// TextWidth returns the width of a text token.
func (m *dual) TextWidth() int { return m.bert.Width }

// Dim returns C, the channels of the shared space.
func (m *dual) Dim() int { return m.head.Dim }

// Vocab returns V, the size of the vocabulary.
func (m *dual) Vocab() int { return m.bert.Vocab }

// Params returns the parameters.
func (m *dual) Params() *Params { return m.params }

// Temperature returns the contrast's temperature.
func (m *dual) Temperature() float64 { return temperature(m.params) }

// ClampTemperature keeps the temperature in its range, as after every update; ALBEF's
// code does so at the start of each forward pass. With
// objective.itc.log_temperature the scale 1/temperature is capped, as CLIP caps it.
func (m *dual) ClampTemperature() { clampTemperature(m.params, m.cfg) }
