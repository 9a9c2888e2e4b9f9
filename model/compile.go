package model

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
)

// compile differentiates the loss, compiles the graph and binds all inputs.
func (s *builder) compile() error {
	m, tg := s.m, s.tg
	m.params.seal()
	tg.learnable = map[string]bool{}
	reached := gradientReaches(s.g, tg.loss)
	var wrt gorgonia.Nodes
	var mem [][]float32
	s.params.each(func(q *Param, n *gorgonia.Node, _ []float32) {
		if !reached[n.ID()] || q.Name == temperatureName && !m.cfg.Objective.ITC.LearnTemperature {
			return
		}
		tg.learnable[q.Name] = true
		wrt, mem = append(wrt, n), append(mem, m.params.Grad(q))
	})
	grads, err := gorgonia.Grad(tg.loss, wrt...)
	if err != nil {
		return fmt.Errorf("model: differentiating the loss: %w", err)
	}
	bind := map[*gorgonia.Node][]float32{}
	for i, n := range grads {
		// Two biases whose sums meet in one addition have one gradient node, which
		// can be written to one place only.
		if _, dup := bind[n]; dup {
			return fmt.Errorf("model: %s shares its gradient with another parameter: one of the two is redundant", wrt[i].Name())
		}
		bind[n] = mem[i]
	}
	outputs := append(gorgonia.Nodes{tg.loss}, grads...)
	for _, p := range tg.parts {
		outputs = append(outputs, p.node)
	}
	if tg.imageM != nil {
		outputs = append(outputs, tg.imageM, tg.textM)
	}
	tg.machine, err = exec.Compile(s.g, exec.Config{Engine: m.engine, Outputs: outputs, Bind: bind, CheckNaN: m.cfg.Compute.CheckNaN})
	if err != nil {
		return err
	}
	tg.result.Parts = make([]Part, len(tg.parts))
	return s.bindInputs()
}

// gradientReaches returns the ids of the nodes that loss has a gradient for. A
// parameter outside is not trained, such as a projection whose features only choose
// the negatives of matching.
func gradientReaches(g *gorgonia.ExprGraph, loss *gorgonia.Node) map[int64]bool {
	reached := map[int64]bool{}
	var visit func(n *gorgonia.Node)
	visit = func(n *gorgonia.Node) {
		if reached[n.ID()] {
			return
		}
		reached[n.ID()] = true
		op, ok := n.Op().(gorgonia.SDOp)
		if !ok {
			return
		}
		operands := gorgonia.Nodes{}
		for it := g.From(n.ID()); it.Next(); {
			operands = append(operands, it.Node().(*gorgonia.Node))
		}
		for i, flows := range op.DiffWRT(len(operands)) {
			if flows {
				visit(operands[i])
			}
		}
	}
	visit(loss)
	return reached
}

// bindInputs ties the inputs to memory that stays put.
func (s *builder) bindInputs() error {
	m, tg, h := s.m, s.tg, &s.tg.host
	var err error
	set := func(n *gorgonia.Node, data any) {
		if n != nil && err == nil {
			err = tg.machine.SetInput(n, data)
		}
	}
	// ints and floats give an input memory of its own, nil if the step has no such input.
	ints := func(n *gorgonia.Node) (mem []int32) {
		if n != nil {
			mem = make([]int32, n.Shape().TotalSize())
			set(n, mem)
		}
		return mem
	}
	floats := func(n *gorgonia.Node) (mem []float32) {
		if n != nil {
			mem = make([]float32, n.Shape().TotalSize())
			set(n, mem)
		}
		return mem
	}
	for _, w := range []*binding{s.params, s.twins} {
		w.each(func(_ *Param, n *gorgonia.Node, mem []float32) { set(n, mem) })
	}
	for n, values := range s.fixed {
		set(n, values)
	}
	places := func(p *encoders.Places) placesHost {
		if p == nil {
			return placesHost{}
		}
		return placesHost{ints(p.Rows), ints(p.Sequences)}
	}
	h.text, h.lengths = ints(tg.text), ints(tg.lengths)
	n, b := tg.batch*tg.tokens, tg.batch
	set(tg.clean.ids, h.text[:n])
	set(tg.clean.lengths, h.lengths[:b])
	if tg.maskRows > 0 {
		set(tg.masked.ids, h.text[n:])
		set(tg.masked.lengths, h.lengths[b:])
	}
	h.places, h.teacherPlaces = places(tg.places), places(tg.teacherPlaces)
	h.noiseI2T, h.noiseT2I = floats(tg.noiseI2T), floats(tg.noiseT2I)
	h.colIDs = ints(tg.colIDs)
	set(tg.alpha, h.alpha[:])
	set(tg.cols, h.cols[:])
	set(tg.key, h.key[:])
	if m.queue != nil {
		set(tg.imageQueue, m.queue.Image)
		set(tg.textQueue, m.queue.Text)
	}
	return err
}
