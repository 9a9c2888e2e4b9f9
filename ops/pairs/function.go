package pairs

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
)

// function is a function of each value with a parameter p. The kernels of devices know it by its name.
type function struct {
	name  string
	value func(to, x []float32, p float32)
	// slope sets the gradient of x where y is the value and dy its gradient; to may be dy.
	slope func(to, x, y, dy []float32, p float32)
}

// LeakyReLU returns x where it is above 0, else slope times x.
func (m Matrix) LeakyReLU(slope float32) Matrix { return m.apply(&leaky, slope) }

// Scale returns a x.
func (m Matrix) Scale(a float32) Matrix { return m.apply(&scale, a) }

// Softplus returns log(1 + exp(a x)).
func (m Matrix) Softplus(a float32) Matrix { return m.apply(&softplus, a) }

// Exp returns exp(a x).
func (m Matrix) Exp(a float32) Matrix { return m.apply(&exponential, a) }

// Sigmoid returns 1 / (1 + exp(-a x)).
func (m Matrix) Sigmoid(a float32) Matrix { return m.apply(&logistic, a) }

// InverseRoot returns 1 / (sqrt(x) + eps). The gradient at 0 is 0.
func (m Matrix) InverseRoot(eps float32) Matrix { return m.apply(&inverseRoot, eps) }

var leaky = function{
	name: "leaky",
	value: func(to, x []float32, p float32) {
		to = to[:len(x)]
		for i, v := range x {
			to[i] = v * leak(v, p)
		}
	},
	slope: func(to, x, _, dy []float32, p float32) {
		to, dy = to[:len(x)], dy[:len(x)]
		for i, v := range x {
			to[i] = dy[i] * leak(v, p)
		}
	},
}

// leak returns 1 for a v above 0, else p, without a branch that would be guessed wrong every other time.
func leak(v, p float32) float32 {
	const one = 0x3f800000
	bits := math.Float32bits(v)
	negative := uint32(int32(bits|(bits-1)) >> 31)
	return math.Float32frombits(one ^ (one^math.Float32bits(p))&negative)
}

var scale = function{
	name:  "scale",
	value: func(to, x []float32, p float32) { vector.Scale(to, p, x) },
	slope: func(to, _, _, dy []float32, p float32) { vector.Scale(to, p, dy) },
}

var exponential = function{
	name: "exponential",
	value: func(to, x []float32, p float32) {
		vector.Scale(to, p, x)
		vector.Exp(to, to)
	},
	slope: func(to, _, y, dy []float32, p float32) {
		vector.Mul(to, dy, y)
		vector.Scale(to, p, to)
	},
}

var logistic = function{
	name: "logistic",
	value: func(to, x []float32, p float32) {
		for i, v := range x {
			to[i] = sigmoid(p * v)
		}
	},
	slope: func(to, _, y, dy []float32, p float32) {
		for i, v := range y {
			to[i] = p * dy[i] * v * (1 - v)
		}
	},
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

var inverseRoot = function{
	name: "inverse_root",
	value: func(to, x []float32, p float32) {
		for i, v := range x {
			to[i] = 1 / (float32(math.Sqrt(float64(v))) + p)
		}
	},
	slope: func(to, x, y, dy []float32, _ float32) {
		for i, v := range x {
			if v == 0 {
				to[i] = 0
			} else {
				to[i] = -dy[i] * y[i] * y[i] / (2 * float32(math.Sqrt(float64(v))))
			}
		}
	},
}

var softplus = function{
	name: "softplus",
	value: func(to, x []float32, p float32) {
		for i, v := range x {
			v := float64(p * v)
			to[i] = float32(max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
		}
	},
	slope: func(to, x, _, dy []float32, p float32) {
		for i, v := range x {
			to[i] = p * dy[i] * float32(1/(1+math.Exp(-float64(p*v))))
		}
	},
}

func (m Matrix) apply(f *function, p float32) Matrix {
	return m.with(m.b.sides.function(m.b.spans, m.node, m.grid, f, p), m.grid)
}

// scaled returns a x.
func (s sides) scaled(spans [2]*gorgonia.Node, x *gorgonia.Node, g grid, a float32) *gorgonia.Node {
	if a == 1 {
		return x
	}
	return s.function(spans, x, g, &scale, a)
}

func (s sides) function(spans [2]*gorgonia.Node, x *gorgonia.Node, g grid, f *function, p float32) *gorgonia.Node {
	return s.apply(primitive{
		kind: f.name, args: fmt.Sprint(g, p), shape: s.shape(g), operands: 1,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep {
			return m.Elements(f.name, oncuda.Grid(g), []oncuda.Grid{oncuda.Grid(g)}, p)
		},
		sequence: func(w *work, _, i int) {
			at, end := w.spans[0].along(g[0], i)
			n := w.spans[1].size(g[1])
			to := w.Out.F32[at*n : end*n]
			f.value(to, w.In[0].F32[at*n:end*n], p)
			w.clearEmpty(to, i, g)
		},
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: f.name + " slope", args: fmt.Sprint(g, p), shape: s.shape(g), operands: 3, inPlace: []int{2},
				on: func(m oncuda.Sides) map[string]exec.DeviceStep {
					x := oncuda.Grid(g)
					return m.Elements(f.name+"_slope", x, []oncuda.Grid{x, x, x}, p)
				},
				sequence: func(w *work, _, i int) {
					at, end := w.spans[0].along(g[0], i)
					n := w.spans[1].size(g[1])
					at, end = at*n, end*n
					f.slope(w.Out.F32[at:end], w.In[0].F32[at:end], w.In[1].F32[at:end], w.In[2].F32[at:end], p)
				},
			}, spans, in[0], out, dy)}
		},
	}, spans, x)
}

// clearEmpty clears values of sequences without a token in the rows of sequence i.
func (w *work) clearEmpty(x []float32, i int, g grid) {
	if _, n := w.spans[0].of(i); n == 0 && g[0] == Sequences {
		clear(x)
	}
	if g[1] != Sequences {
		return
	}
	columns := w.spans[1].size(Sequences)
	for j := range columns {
		if _, n := w.spans[1].of(j); n == 0 {
			for at := j; at < len(x); at += columns {
				x[at] = 0
			}
		}
	}
}
