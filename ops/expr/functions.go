package expr

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Plus is x + y.
func (x *Value) Plus(y *Value) *Value {
	return call(function{
		name: "add", device: "%s + %s", commutes: true, slices: two(vector.Add),
		grads: func(_ []*Value, _, dy *Value) []*Value { return []*Value{dy, dy} },
	}, x, y)
}

// Minus is x - y.
func (x *Value) Minus(y *Value) *Value {
	return call(function{
		name: "sub", device: "%s - %s", slices: two(vector.Sub),
		grads: func(_ []*Value, _, dy *Value) []*Value { return []*Value{dy, Number(-1).Times(dy)} },
	}, x, y)
}

// Times is x y.
func (x *Value) Times(y *Value) *Value {
	if x.is(1) {
		return y
	}
	if y.is(1) {
		return x
	}
	return call(function{
		name: "mul", device: "%s * %s", commutes: true, slices: two(vector.Mul),
		scaled: func(dst []float32, a float32, b, _ []float32) { vector.Scale(dst, a, b) },
		grads:  func(x []*Value, _, dy *Value) []*Value { return []*Value{x[1].Times(dy), x[0].Times(dy)} },
	}, x, y)
}

// Over is x / y.
func (x *Value) Over(y *Value) *Value {
	return call(function{
		name: "div", device: "%s / %s",
		slices: func(dst, a, b, _ []float32) {
			for i := range dst {
				dst[i] = a[i] / b[i]
			}
		},
		grads: func(x []*Value, y, dy *Value) []*Value {
			dx := dy.Over(x[1])
			return []*Value{dx, Number(-1).Times(y.Times(dx))}
		},
	}, x, y)
}

// PlusTimes is x + a y, in one rounding where the machine can.
func (x *Value) PlusTimes(a, y *Value) *Value {
	return call(function{
		name: "fma", device: "fmaf(%s, %s, %s)", commutes: true,
		slices: func(dst, a, y, x []float32) {
			for i := range dst {
				dst[i] = float32(float64(a[i])*float64(y[i]) + float64(x[i]))
			}
		},
		scaled: func(dst []float32, a float32, y, x []float32) {
			if unsafe.SliceData(dst) == unsafe.SliceData(x) {
				vector.Axpy(dst, a, y)
			} else {
				vector.Axpby(dst, 1, x, a, y)
			}
		},
		grads: func(x []*Value, _, dy *Value) []*Value { return []*Value{x[1].Times(dy), x[0].Times(dy), dy} },
	}, a, y, x)
}

// Square is x x.
func (x *Value) Square() *Value {
	return call(function{
		name: "square", device: "%[1]s * %[1]s",
		slices: func(dst, a, _, _ []float32) { vector.Mul(dst, a, a) },
		grads:  func(x []*Value, _, dy *Value) []*Value { return []*Value{Number(2).Times(x[0].Times(dy))} },
	}, x)
}

// Sqrt is the square root of x.
func (x *Value) Sqrt() *Value {
	return call(function{
		name: "sqrt", device: "sqrtf(%s)", dear: true, number: math.Sqrt,
		grads: func(_ []*Value, y, dy *Value) []*Value { return []*Value{Number(.5).Times(dy).Over(y)} },
	}, x)
}

// Exp is e^x.
func (x *Value) Exp() *Value {
	return call(function{
		name: "exp", device: "expf(%s)", dear: true, number: math.Exp,
		slices: func(dst, a, _, _ []float32) { vector.Exp(dst, a) },
		grads:  func(_ []*Value, y, dy *Value) []*Value { return []*Value{y.Times(dy)} },
	}, x)
}

// Log is the natural logarithm of x.
func (x *Value) Log() *Value {
	return call(function{
		name: "log", device: "logf(%s)", dear: true, number: math.Log,
		grads: func(x []*Value, _, dy *Value) []*Value { return []*Value{dy.Over(x[0])} },
	}, x)
}

// Sigmoid is 1 / (1 + exp(-x)).
func (x *Value) Sigmoid() *Value {
	return call(function{
		name: "sigmoid", device: "sigmoid(%s)", dear: true, number: sigmoid,
		slices: func(dst, a, _, _ []float32) { sigmoids(a, func(i int, _, s float32) { dst[i] = s }) },
		grads: func(_ []*Value, y, dy *Value) []*Value {
			return []*Value{y.Times(Number(1).Minus(y)).Times(dy)}
		},
	}, x)
}

// Tanh is the hyperbolic tangent y of x, to 1e-7; its derivative is 1 - y^2.
func (x *Value) Tanh() *Value {
	return call(function{
		name: "tanh", device: "tanhf(%s)", dear: true, number: math.Tanh,
		slices: func(dst, a, _, _ []float32) {
			vector.Scale(dst, 2, a)
			sigmoids(dst, func(i int, _, s float32) { dst[i] = 2*s - 1 })
		},
		grads: func(_ []*Value, y, dy *Value) []*Value {
			return []*Value{Number(1).Minus(y.Square()).Times(dy)}
		},
	}, x)
}

// SiLU is x s with s = sigmoid(x) (Hendrycks and Gimpel 2016); its derivative is s (1 + x (1 - s)).
func (x *Value) SiLU() *Value {
	return call(function{
		name: "silu", device: "%[1]s * sigmoid(%[1]s)", dear: true,
		number: func(x float64) float64 { return x * sigmoid(x) },
		slices: func(dst, a, _, _ []float32) { sigmoids(a, func(i int, x, s float32) { dst[i] = x * s }) },
		grads: func(x []*Value, _, dy *Value) []*Value {
			s := x[0].Sigmoid()
			return []*Value{s.Times(Number(1).Plus(x[0].Times(Number(1).Minus(s)))).Times(dy)}
		},
	}, x)
}

// ReLU is max(x, 0), NaN of NaN. Its gradient at 0 is 0.
func (x *Value) ReLU() *Value {
	return call(function{
		name: "relu", device: "(%[1]s < 0.f ? 0.f : %[1]s)", slices: func(dst, a, _, _ []float32) { vector.ReLU(dst, a) },
		grads: func(_ []*Value, y, dy *Value) []*Value { return []*Value{dy.WhereAbove(y)} },
	}, x)
}

// WhereAbove is x where y is greater than 0, and 0 elsewhere. No gradient flows to y.
func (x *Value) WhereAbove(y *Value) *Value {
	return call(function{
		name: "where", device: "(%s > 0.f ? %s : 0.f)", slices: two(vector.ReLUGrad),
		grads: func(x []*Value, _, dy *Value) []*Value { return []*Value{nil, dy.WhereAbove(x[0])} },
	}, y, x)
}

// Less is 1 where x < y, and 0 elsewhere. No gradient flows through it.
func (x *Value) Less(y *Value) *Value {
	return call(function{
		name: "less", device: "(%s < %s ? 1.f : 0.f)",
		slices: func(dst, a, b, _ []float32) {
			for i := range dst {
				v := float32(0)
				if a[i] < b[i] {
					v = 1
				}
				dst[i] = v
			}
		},
		grads: func([]*Value, *Value, *Value) []*Value { return nil },
	}, x, y)
}

// Or is x where the condition is 0, and y elsewhere. No gradient flows to the condition.
func (x *Value) Or(y, condition *Value) *Value {
	return call(function{
		name: "select", device: "(%s != 0.f ? %s : %s)",
		slices: func(dst, condition, yes, no []float32) {
			for i := range dst {
				v := no[i]
				if condition[i] != 0 {
					v = yes[i]
				}
				dst[i] = v
			}
		},
		grads: func(x []*Value, _, dy *Value) []*Value {
			return []*Value{nil, Number(0).Or(dy, x[0]), dy.Or(Number(0), x[0])}
		},
	}, condition, y, x)
}

// Activated is an activation of a product, see vector.Activation. Of them GELU alone is known to expressions on a device: an op
// that is another one names its steps there.
func (x *Value) Activated(of vector.Activation) *Value {
	value, slope := "", ""
	if of == vector.ByGELU {
		value = "%[1]s * (.5f * erfcf(-.70710678f * %[1]s))"
		slope = "%[2]s * (.5f * erfcf(-.70710678f * %[1]s) + .39894228f * %[1]s * expf(-.5f * %[1]s * %[1]s))"
	}
	return call(function{
		name: "by " + of.String(), device: value, dear: true,
		slices: func(dst, a, _, _ []float32) { of.Apply(dst, a) },
		grads: func(x []*Value, _, dy *Value) []*Value {
			return []*Value{call(function{
				name: "slope of " + of.String(), device: slope, dear: true, slices: two(of.Grad),
			}, x[0], dy)}
		},
	}, x)
}

// two is a function of two slices as that of a function.
func two(f func(dst, a, b []float32)) func(dst, a, b, c []float32) {
	return func(dst, a, b, _ []float32) { f(dst, a, b) }
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// sigmoids calls f with each of the values of x and its sigmoid. f may write where x lies.
func sigmoids(x []float32, f func(i int, x, s float32)) {
	const block = 256 // on the stack
	var s [block]float32
	for lo := 0; lo < len(x); lo += block {
		n := min(block, len(x)-lo)
		vector.Scale(s[:n], -1, x[lo:lo+n])
		vector.Exp(s[:n], s[:n])
		for i := range n {
			f(lo+i, x[lo+i], 1/(1+s[i]))
		}
	}
}
