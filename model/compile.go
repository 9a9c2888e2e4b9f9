package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// outcome is a compiled training step: what it computes and reports.
type outcome struct {
	machine   *exec.Machine
	loss      *gorgonia.Node
	parts     []objectives.Part
	result    Result
	learnable map[string]bool
	features  []gradientTo   // further nodes with a gradient
	spans     map[int64]Span // of the gradients of parameters, by their nodes
	footprint Footprint      // of training by it
}

// compile differentiates the loss and compiles the step with the further outputs,
// writing gradients to their place in the store, and binds the parameters. It is the
// first compilation that fixes the set of parameters. need is the memory of training so far,
// which counts when the machine is too small.
func (o *outcome) compile(b *net, need Footprint, c exec.Config) error {
	store := b.params.params
	if err := need.fits(); err != nil {
		return err
	}
	if err := store.seal(); err != nil {
		return err
	}
	if err := store.place(c.Engine); err != nil {
		return err
	}
	o.learnable = map[string]bool{}
	reached := gradientReaches(b.g, o.loss)
	c.Recompute.Backward = exec.NextID(b.g)
	list := b.learned(reached, o.learnable)
	for _, x := range o.features {
		if reached[x.of.ID()] {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return errors.New("model: nothing is trained: all that the losses read is frozen, or has no adapter: set model.image.freeze = false, or name layers in model.lora.layers")
	}
	grads, err := gorgonia.Grad(o.loss, nodesOf(list)...)
	if err != nil {
		return fmt.Errorf("model: differentiating the loss: %w", err)
	}
	c.Outputs = append(c.Outputs, o.loss)
	if err := bindGradients(&c, store, list, grads); err != nil {
		return err
	}
	o.spans = map[int64]Span{}
	for i, n := range grads {
		if q := list[i].param; q != nil {
			o.spans[n.ID()] = Span{q.offset, q.offset + q.Len()}
		}
	}
	for _, p := range o.parts {
		c.Outputs = append(c.Outputs, p.Node)
	}
	if o.machine, err = need.compile(b, c); err != nil {
		return err
	}
	o.result.Parts = make([]Part, len(o.parts))
	need.Buffers = o.machine.Memory()
	o.footprint = need
	return b.bindParams(o.machine)
}

// gradientTo is a node that a loss is differentiated by, and where its gradient goes.
type gradientTo struct {
	of    *gorgonia.Node
	to    []float32
	param *Param // nil of another node
}

// nodesOf returns the nodes of a list.
func nodesOf(list []gradientTo) (nodes gorgonia.Nodes) {
	for _, x := range list {
		nodes = append(nodes, x.of)
	}
	return nodes
}

// learned lists the parameters that a gradient reaches and that are trained, with their place
// among the gradients, and enters their names.
func (b *net) learned(reached map[int64]bool, names map[string]bool) (list []gradientTo) {
	b.params.each(func(q *Param, n *gorgonia.Node, _ []float32) {
		if reached[n.ID()] && !q.Frozen {
			names[q.Name] = true
			list = append(list, gradientTo{n, b.params.params.Grad(q), q})
		}
	})
	return list
}

// bindGradients has a computation write the gradients of a list to their places. Until then its results may lie there.
func bindGradients(c *exec.Config, store *Params, list []gradientTo, grads gorgonia.Nodes) error {
	c.Lend = store.grads
	c.Bind = map[*gorgonia.Node][]float32{}
	for i, n := range grads {
		// Two biases whose sums meet in one addition have one gradient node, which
		// can be written to one place only.
		if _, dup := c.Bind[n]; dup {
			return fmt.Errorf("model: %s shares its gradient with another parameter: one of the two is redundant",
				list[i].of.Name())
		}
		c.Bind[n] = list[i].to
	}
	c.Outputs = append(c.Outputs, grads...)
	return nil
}

// run computes loss and gradients. It ends early with the error of ctx.
func (o *outcome) run(ctx context.Context) error {
	return o.machine.Run(ctx)
}

// read returns the loss and its parts after a run.
func (o *outcome) read() (*Result, error) {
	loss, err := o.machine.Scalar(o.loss)
	if err != nil {
		return nil, err
	}
	o.result.Loss = float64(loss)
	o.result.Parts = o.result.Parts[:len(o.parts)]
	for i, p := range o.parts {
		v, err := o.machine.Scalar(p.Node)
		if err != nil {
			return nil, err
		}
		o.result.Parts[i] = Part{Name: p.Name, Value: float64(v), Measure: p.Measure}
	}
	return &o.result, nil
}

// bindTo ties the nodes handed out to their memory.
func (b *binding) bindTo(m *exec.Machine) (err error) {
	b.each(func(_ *Param, n *gorgonia.Node, mem []float32) {
		if err == nil {
			err = m.SetInput(n, mem)
		}
	})
	return err
}

// gradientReaches returns the ids of the nodes that losses, or other nodes with a gradient,
// have a gradient for. A parameter outside is not trained, such as a projection whose features
// only choose the negatives of matching.
func gradientReaches(g *gorgonia.ExprGraph, losses ...*gorgonia.Node) map[int64]bool {
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
	for _, n := range losses {
		visit(n)
	}
	return reached
}
