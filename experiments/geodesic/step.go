package main

import (
	"math"

	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// cosine is the name of the score that needs no graph.
const cosine = "cosine"

// modes are the scores in the order of the tables.
var modes = []string{cosine, "strict", "same_cluster", "straight_through", "soft_entry",
	"same_cluster+straight_through", "same_cluster+soft_entry", "straight_through+soft_entry",
	"same_cluster+straight_through+soft_entry"}

// step is a compiled computation on rows F (B, C) and a pool of N entries in which the
// batch's keys stand for the oldest: scores and a gradient for F.
type step struct {
	machine     *compute.Machine
	grad        *gorgonia.Node
	pointer     [1]int32
	count       [1]int32
	temperature [1]float32
	labels      []int32
	inputs      map[string]*gorgonia.Node
}

// stepOptions select the computation.
type stepOptions struct {
	engine                *compute.Engine
	batch, channels, size int    // B, C and N
	mode                  string // one of modes
	// temperature of the contrast whose gradient F gets, with each row's own key as its
	// positive; 0: F gets the gradient of sum_ij s_ij * dy_ij for an input dy (B, N).
	temperature float64
}

// paths returns the options of a geodesic score over k centres in a mode, at the default
// configuration.
func paths(mode string, k int) objectives.Paths {
	g := config.Default().Objective.Geodesic
	return objectives.ParsePaths(mode, min(g.Entries, k), g.Softness, g.LimitPi*math.Pi, g.DirectPositives)
}

// newStep compiles a step that reads a queue (N, C) and the graph over it, which is nil
// for cosines.
func newStep(o stepOptions, queue []float32, graph *geodesic.Graph) (s *step, err error) {
	defer op.Catch(&err)
	s = &step{inputs: map[string]*gorgonia.Node{}, labels: make([]int32, o.batch)}
	g := gorgonia.NewGraph()
	input := func(name string, t tensor.Dtype, shape ...int) *gorgonia.Node {
		var n *gorgonia.Node
		if len(shape) == 0 {
			n = gorgonia.NewScalar(g, t, gorgonia.WithName(name))
		} else {
			n = gorgonia.NewTensor(g, t, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
		}
		s.inputs[name] = n
		return n
	}
	f := input("f", tensor.Float32, o.batch, o.channels)
	bank := &objectives.Bank{
		Keys:    input("keys", tensor.Float32, o.batch, o.channels),
		Queue:   input("queue", tensor.Float32, o.size, o.channels),
		Pointer: input("pointer", tensor.Int32),
	}
	bind := map[string]any{"queue": queue, "pointer": s.pointer[:]}
	var scores *gorgonia.Node
	if o.mode == cosine {
		scores = bank.Cosine(f)
	} else {
		k := len(graph.Centres) / o.channels
		bank.Graph = &objectives.Graph{
			Centres: input("centres", tensor.Float32, k, o.channels), Paths: input("paths", tensor.Float32, k, k),
			Owner: input("owner", tensor.Int32, o.size), Reach: input("reach", tensor.Float32, o.size),
			Count: input("count", tensor.Int32),
		}
		s.count[0] = int32(graph.Used)
		bind["centres"], bind["paths"], bind["owner"], bind["reach"], bind["count"] = graph.Centres, graph.Paths,
			graph.Owner, graph.Reach, s.count[:]
		scores = bank.Geodesic(f, paths(o.mode, k), objectives.Positives{})
	}
	if s.grad, err = s.gradient(o, input, f, scores); err != nil {
		return nil, fmt.Errorf("%s: %w", o.mode, err)
	}
	s.temperature[0] = float32(o.temperature)
	bind["labels"], bind["temperature"] = s.labels, s.temperature[:]
	// The gradient of some modes needs no scores, which a step computes all the same.
	if s.machine, err = compute.Compile(g,
		compute.Config{Engine: o.engine, Outputs: gorgonia.Nodes{scores, s.grad}}); err != nil {
		return nil, fmt.Errorf("%s: %w", o.mode, err)
	}
	return s, s.set(bind)
}

// gradient returns the gradient of f.
func (s *step) gradient(o stepOptions, input func(string, tensor.Dtype, ...int) *gorgonia.Node, f,
	scores *gorgonia.Node) (*gorgonia.Node, error) {
	var grads gorgonia.Nodes
	var err error
	if o.temperature == 0 {
		dy := input("dy", tensor.Float32, o.batch, o.size)
		grads, err = gorgonia.Backpropagate(gorgonia.Nodes{scores}, gorgonia.Nodes{dy}, gorgonia.Nodes{f})
	} else {
		loss := contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: arith.DivScalar(scores, input("temperature", tensor.Float32)),
			Labels: input("labels", tensor.Int32, o.batch),
		})
		grads, err = gorgonia.Grad(loss, f)
	}
	if err != nil {
		return nil, err
	}
	return grads[0], nil
}

// set binds memory to inputs; those that the step does not have are passed over.
func (s *step) set(data map[string]any) error {
	for name, x := range data {
		n := s.inputs[name]
		if n == nil {
			continue
		}
		if err := s.machine.SetInput(n, x); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// at sets where the batch enters the pool.
func (s *step) at(pointer, size int) {
	s.pointer[0] = int32(pointer)
	for i := range s.labels {
		s.labels[i] = int32((pointer + i) % size)
	}
}
