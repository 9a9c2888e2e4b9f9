package model

import (
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// headsKey names an inference graph: the modality and the rows.
type headsKey struct {
	tower string
	rows  int
}

// headsEval is a compiled inference graph.
type headsEval struct {
	machine *compute.Machine
	in, out *gorgonia.Node
}

// EncodeImages maps n image features (n, Dimage) to unit rows (n, C) without dropout.
// The next call with the same n overwrites the result. A graph is kept for every n:
// call it with few different ones.
func (h *Heads) EncodeImages(features []float32, n int) ([]float32, error) {
	return h.encode(h.image, features, n)
}

// EncodeTexts maps n text features (n, Dtext) to unit rows (n, C), as EncodeImages
// does.
func (h *Heads) EncodeTexts(features []float32, n int) ([]float32, error) {
	return h.encode(h.text, features, n)
}

func (h *Heads) encode(t headTower, features []float32, n int) ([]float32, error) {
	if n < 1 || len(features) != n*t.in {
		return nil, batchError("features", len(features), n*t.in)
	}
	g, err := h.evalGraph(t, n)
	if err != nil {
		return nil, err
	}
	if err := g.machine.SetInput(g.in, features); err != nil {
		return nil, err
	}
	if err := g.machine.RunAll(); err != nil {
		return nil, err
	}
	a, err := g.machine.Value(g.out)
	return a.F32, err
}

// evalGraph returns the inference graph of a tower for n rows.
func (h *Heads) evalGraph(t headTower, n int) (g *headsEval, err error) {
	key := headsKey{t.name, n}
	if g := h.eval[key]; g != nil {
		return g, nil
	}
	defer op.Catch(&err)
	b := newGraph(h.params)
	g = &headsEval{in: b.floats("features", n, t.in)}
	g.out = t.forward(&encoders.Context{}, encoders.NewScope(b.params), g.in)
	if g.machine, err = exec.Compile(b.g, exec.Config{Engine: h.engine, Outputs: gorgonia.Nodes{g.out}}); err != nil {
		return nil, err
	}
	if err := b.bindParams(g.machine); err != nil {
		return nil, err
	}
	h.eval[key] = g
	return g, nil
}
