package encoders

import "math"

// start says how the weight and the bias of a dense layer with so many inputs begin.
type start func(in int) (weight, bias Init)

// from starts weights by init and biases at 0, whatever the inputs.
func from(init Init) start { return func(int) (Init, Init) { return init, Zeros } }

// torchLinear is PyTorch's default of a linear layer.
func torchLinear(in int) (weight, bias Init) { return LinearDefault(in), LinearDefault(in) }

// starts says how the parts of a transformer block begin.
type starts struct {
	qkv, output start // of attention: the joint projection to 3D columns, and the output
	mlp         start // both layers
}

// sameStarts starts all parts alike.
func sameStarts(init Init) starts { return starts{from(init), from(init), from(init)} }

// torchStarts are PyTorch's defaults, which the towers of CLIP-like models leave as they
// are: nn.MultiheadAttention draws its joint projection (3D, D) from Xavier's uniform
// distribution, U(+-sqrt(6/(D+3D))), the rest like any linear layer, and sets its
// biases to 0.
var torchStarts = starts{
	qkv:    func(d int) (Init, Init) { return Uniform(math.Sqrt(1.5 / float64(d))), Zeros },
	output: func(d int) (Init, Init) { return LinearDefault(d), Zeros },
	mlp:    torchLinear,
}
