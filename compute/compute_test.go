package compute_test

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func ExampleCompile() {
	if err := run(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// loss 0.6931472
	// gradient [-0.25 -0.25 0.25 0.25]
}

func run() (err error) {
	engine, err := compute.New(compute.Options{Threads: 2})
	if err != nil {
		return err
	}
	defer engine.Close()
	defer op.Catch(&err)

	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 2), gorgonia.WithName("x"))
	w := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 2), gorgonia.WithName("w"))
	labels := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("labels"))
	cost := contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: nn.Linear(x, w, nil), Labels: labels})
	grads, err := gorgonia.Grad(cost, w)
	if err != nil {
		return err
	}

	m, err := compute.Compile(g, compute.Config{Engine: engine, Outputs: gorgonia.Nodes{cost, grads[0]}})
	if err != nil {
		return err
	}
	for _, in := range []struct {
		node *gorgonia.Node
		data any
	}{{x, []float32{1, 1, 0, 0}}, {w, make([]float32, 4)}, {labels, []int32{0, 1}}} {
		if err := m.SetInput(in.node, in.data); err != nil {
			return err
		}
	}
	if err := m.RunAll(); err != nil {
		return err
	}
	loss, err := m.Scalar(cost)
	if err != nil {
		return err
	}
	dw, err := m.Value(grads[0])
	if err != nil {
		return err
	}
	fmt.Println("loss", loss)
	fmt.Println("gradient", dw.F32)
	return nil
}
