package interaction

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// scored describes an op that gives the scores (N, M) of all pairs from the rows of images and of texts, its first
// operands, and the op of its gradients, which makes again what it needs.
type scored struct {
	kind, gradients string // of both ops
	args            string
	operands        int // of the first
	// those with a gradient, in the order of the results of the second; the first is 0, the images' rows
	floats []int
	passes int64 // products of the second op, in those of the first, where slopes is nil

	shape   func(in []tensor.Shape) (tensor.Shape, error)
	scratch func(in []tensor.Shape, threads int, backward bool) int
	flops   func(in []tensor.Shape) int64
	slopes  func(in []tensor.Shape) int64 // products of the second op
	step    func(c *exec.Call, backward bool) (exec.Step, error)
	onCUDA  func(backward bool) map[string]exec.DeviceStep // nil: there is no step
}

func (x scored) forward() *op.Op {
	o := &op.Op{
		Kind: x.kind, Args: x.args, Shape: x.shape, Diff: make([]bool, x.operands), FLOPs: x.flops,
		Scratch: func(in []tensor.Shape, threads int) int { return x.scratch(in, threads, false) },
		Host:    func(c *exec.Call) (exec.Step, error) { return x.step(c, false) },
		On:      x.on(false),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			d := op.Apply(x.backward(), append(append(gorgonia.Nodes{}, in...), dy)...)
			grads := make(gorgonia.Nodes, len(in))
			grads[0] = d
			for at, k := range x.floats[1:] {
				grads[k] = op.Take(d, at, in[k].Shape())
			}
			return grads
		},
	}
	for _, k := range x.floats {
		o.Diff[k] = true
	}
	return o
}

// on are the steps for devices.
func (x scored) on(backward bool) map[string]exec.DeviceStep {
	if x.onCUDA == nil {
		return nil
	}
	return x.onCUDA(backward)
}

// backward returns the gradient of the images' rows, and as auxiliary results those of the other floats, from the
// operands and the gradient (N, M) of the scores.
func (x scored) backward() *op.Op {
	slopes := x.slopes
	if slopes == nil {
		slopes = func(in []tensor.Shape) int64 { return x.passes * x.flops(in) }
	}
	return &op.Op{
		Kind: x.gradients, Args: x.args, Diff: make([]bool, x.operands+1),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			out, err := x.shape(in[:x.operands])
			if err != nil {
				return nil, err
			}
			return in[0].Clone(), op.Need(in[x.operands].Eq(out), "dy must have shape %v", out)
		},
		Aux: func(in []tensor.Shape) (list []exec.AuxSpec) {
			for _, k := range x.floats[1:] {
				list = append(list, exec.AuxSpec{Shape: in[k].Clone()})
			}
			return list
		},
		Scratch: func(in []tensor.Shape, threads int) int { return x.scratch(in, threads, true) },
		FLOPs:   slopes,
		Host:    func(c *exec.Call) (exec.Step, error) { return x.step(c, true) },
		On:      x.on(true),
	}
}

// first returns 0 to n-1.
func first(n int) []int {
	list := make([]int, n)
	for k := range list {
		list[k] = k
	}
	return list
}
