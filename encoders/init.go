package encoders

import (
	"math"
	"math/rand/v2"
)

// Init fills a parameter with its starting values.
type Init func(r *rand.Rand, dst []float32)

// Zeros starts a parameter at 0.
func Zeros(_ *rand.Rand, dst []float32) { clear(dst) }

// Const starts a parameter at v.
func Const(v float32) Init {
	return func(_ *rand.Rand, dst []float32) {
		for i := range dst {
			dst[i] = v
		}
	}
}

// Values starts a parameter at the given values.
func Values(v []float32) Init {
	return func(_ *rand.Rand, dst []float32) { copy(dst, v) }
}

// Normal draws from N(0, std^2).
func Normal(std float64) Init {
	return func(r *rand.Rand, dst []float32) {
		for i := range dst {
			dst[i] = float32(std * r.NormFloat64())
		}
	}
}

// TruncNormal draws from N(0, std^2) cut at +-2, as timm's trunc_normal_ does
// (with std .02 the cut is never reached).
func TruncNormal(std float64) Init {
	return func(r *rand.Rand, dst []float32) {
		for i := range dst {
			v := std * r.NormFloat64()
			for math.Abs(v) > 2 {
				v = std * r.NormFloat64()
			}
			dst[i] = float32(v)
		}
	}
}

// Uniform draws from [-bound, bound).
func Uniform(bound float64) Init {
	return func(r *rand.Rand, dst []float32) {
		for i := range dst {
			dst[i] = float32(bound * (2*r.Float64() - 1))
		}
	}
}

// LinearDefault is PyTorch's default for the weight and the bias of a linear
// layer with fanIn inputs: kaiming_uniform(a=sqrt 5) comes to U(+-1/sqrt(fanIn)).
func LinearDefault(fanIn int) Init { return Uniform(1 / math.Sqrt(float64(fanIn))) }

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
