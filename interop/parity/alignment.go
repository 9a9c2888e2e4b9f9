package main

import (
	"cmp"
	"math/rand/v2"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/ops/relation"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Rows of a transport plan, and rows and widths of an alignment by anchors.
const (
	planRows = 60

	anchors, anchored     = 300, 40
	anchorImage, anchorAt = 24, 16
	anchorsKept           = 20
)

// random are n numbers of a normal distribution.
func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// klot adds the divergence of the transport plans of scores and of targets, with its gradient.
func (p *parity) klot() error {
	r := rand.New(rand.NewPCG(19, 0))
	scores, targets := random(r, planRows*planRows), random(r, planRows*planRows)
	for i := range scores { // as cosines
		scores[i], targets[i] = scores[i]/4, targets[i]/4
	}
	shape := []int{planRows, planRows}
	p.add("param/scores", shape, scores)
	p.add("input/targets", shape, targets)
	g := gorgonia.NewGraph()
	var nodes [2]*gorgonia.Node
	for i, name := range []string{"scores", "targets"} {
		nodes[i] = gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(shape...), gorgonia.WithName(name))
	}
	loss, _ := relation.PlanDivergence(relation.PlanArgs{Scores: nodes[0], Target: nodes[1], Epsilon: .05, TargetEpsilon: .1, Iterations: 2000, Tolerance: 1e-7})
	grads, err := gorgonia.Grad(loss, nodes[0])
	if err != nil {
		return err
	}
	m, err := compute.Compile(g, compute.Config{Engine: p.engine, Outputs: gorgonia.Nodes{loss, grads[0]}})
	if err != nil {
		return err
	}
	err = cmp.Or(m.SetInput(nodes[0], scores), m.SetInput(nodes[1], targets), m.RunAll())
	if err != nil {
		return err
	}
	value, err := m.Scalar(loss)
	if err != nil {
		return err
	}
	gradient, err := m.Value(grads[0])
	p.add("loss", []int{1}, []float32{float32(value)})
	p.add("grad/scores", shape, gradient.F32)
	return err
}

// asif adds the scores of images with texts over anchors.
func (p *parity) asif() error {
	r := rand.New(rand.NewPCG(23, 0))
	tables := map[string]align.Table{}
	for _, x := range []struct {
		name    string
		rows, d int
	}{{"anchors/image", anchors, anchorImage}, {"anchors/text", anchors, anchorAt}, {"eval/image", anchored, anchorImage}, {"eval/text", anchored, anchorAt}} {
		t := align.Table{D: x.d, Data: random(r, x.rows*x.d)}
		p.add(x.name, []int{x.rows, x.d}, t.Data)
		tables[x.name] = t
	}
	m, err := align.ASIF{K: anchorsKept}.Fit(p.engine, align.Pairs{Image: tables["anchors/image"], Text: tables["anchors/text"]})
	if err != nil {
		return err
	}
	x, err := m.Apply(p.engine, align.Image, tables["eval/image"].Data)
	if err != nil {
		return err
	}
	y, err := m.Apply(p.engine, align.Text, tables["eval/text"].Data)
	if err != nil {
		return err
	}
	scores, c := make([]float32, anchored*anchored), m.Width()
	p.engine.Gemm(false, true, anchored, anchored, c, 1, x, c, y, c, 0, scores, anchored)
	p.add("scores", []int{anchored, anchored}, scores)
	return nil
}
