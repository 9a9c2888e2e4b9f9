package ops_test

import (
	"fmt"
	"log"

	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A graph of ops is an ordinary Gorgonia graph: gorgonia.Grad differentiates it and
// Gorgonia's own machines run it. This one classifies two inputs with a weight of
// zeros, so both classes have probability 1/2 and the loss is ln 2.
func Example() {
	loss, dw, err := classify()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loss %.4f, gradient of w %v\n", loss, dw)
	// Output:
	// loss 0.6931, gradient of w [-0.25 -0.25 0.25 0.25]
}

func classify() (loss float32, dw []float32, err error) {
	defer op.Catch(&err) // operands whose shapes do not fit
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 2), gorgonia.WithName("x"))
	w := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 2), gorgonia.WithName("w"))
	labels := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("labels"))

	logits := nn.Linear(x, w, nil) // (2, 2)
	cost := contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: labels})
	grads, err := gorgonia.Grad(cost, w)
	if err != nil {
		return 0, nil, err
	}

	// With a zero weight dw = (softmax - onehot)^T x / 2, and the second input is 0.
	for n, v := range map[*gorgonia.Node]tensor.Tensor{
		x:      tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{1, 1, 0, 0})),
		w:      tensor.New(tensor.WithShape(2, 2), tensor.WithBacking(make([]float32, 4))),
		labels: tensor.New(tensor.WithShape(2), tensor.WithBacking([]int32{0, 1})),
	} {
		if err := gorgonia.Let(n, v); err != nil {
			return 0, nil, err
		}
	}
	var lossValue, gradValue gorgonia.Value
	gorgonia.Read(cost, &lossValue)
	gorgonia.Read(grads[0], &gradValue)
	vm := gorgonia.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return 0, nil, err
	}
	return lossValue.Data().(float32), gradValue.Data().([]float32), nil
}
