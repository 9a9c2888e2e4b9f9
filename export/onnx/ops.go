package onnx

import "math"

// last is the end of an axis in a slice.
const last = math.MaxInt32

func (g *Graph) plus(x, y string) string  { return g.op("Add", on(x, y)) }
func (g *Graph) minus(x, y string) string { return g.op("Sub", on(x, y)) }
func (g *Graph) times(x, y string) string { return g.op("Mul", on(x, y)) }

// reshape gives x other axes: 0 is the axis of x at that place, -1 what is left.
func (g *Graph) reshape(x string, axes ...int) string { return g.op("Reshape", on(x, g.ints(axes...))) }

func (g *Graph) transpose(x string, perm ...int) string {
	return g.op("Transpose", on(x), ints("perm", perm...))
}

func (g *Graph) concat(axis int, x ...string) string {
	return g.op("Concat", x, attribute{"axis", axis})
}

// slice is x from from to to (last: the end) of an axis.
func (g *Graph) slice(x string, axis, from, to int) string {
	return g.op("Slice", on(x, g.ints(from), g.ints(to), g.ints(axis)))
}

// until is x up to n, a vector of one integer, of each of the axes.
func (g *Graph) until(x, n string, axes ...int) string {
	for _, a := range axes {
		x = g.op("Slice", on(x, g.ints(0), n, g.ints(a)))
	}
	return x
}

// size is an axis of x, as a vector of one integer.
func (g *Graph) size(x string, axis int) string {
	return g.slice(g.op("Shape", on(x)), 0, axis, axis+1)
}

// unsqueeze gives x an axis of length 1.
func (g *Graph) unsqueeze(x string, axes ...int) string {
	return g.op("Unsqueeze", on(x, g.ints(axes...)))
}

// mean is the mean over the tokens of x (B, L, D): (B, 1, D).
func (g *Graph) mean(x string) string {
	return g.op("ReduceMean", on(x), ints("axes", 1), attribute{"keepdims", 1})
}

// linear is the layer name/weight and, where there is one, name/bias.
func (g *Graph) linear(name, x string) string {
	x = g.op("MatMul", on(x, g.matrix(name+"/weight")))
	if g.has(name + "/bias") {
		x = g.plus(x, g.param(name+"/bias"))
	}
	return x
}

// norm is layer normalisation.
func (g *Graph) norm(name, x string, eps float64) string {
	return g.op("LayerNormalization", on(x, g.param(name+"/weight"), g.param(name+"/bias")), attribute{"axis", -1},
		attribute{"epsilon", float32(eps)})
}

// activated is an activation by its name.
func (g *Graph) activated(name, x string) string {
	switch name {
	case "gelu": // x/2 (1 + erf(x/sqrt 2))
		e := g.op("Erf", on(g.times(x, g.number(math.Sqrt2/2))))
		return g.times(g.times(x, g.plus(e, g.number(1))), g.number(0.5))
	case "gelu_tanh": // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
		cube := g.times(g.times(g.times(x, x), x), g.number(0.044715))
		e := g.op("Tanh", on(g.times(g.plus(x, cube), g.number(float32(math.Sqrt(2/math.Pi))))))
		return g.times(g.times(x, g.plus(e, g.number(1))), g.number(0.5))
	case "quick_gelu":
		return g.times(x, g.op("Sigmoid", on(g.times(x, g.number(1.702)))))
	case "silu":
		return g.times(x, g.op("Sigmoid", on(x)))
	case "relu":
		return g.op("Relu", on(x))
	case "tanh":
		return g.op("Tanh", on(x))
	case "swiglu": // gates beside values
		parts := g.several("Split", 2, on(x), attribute{"axis", -1})
		return g.times(g.activated("silu", parts[0]), parts[1])
	}
	g.fail("there is no activation %q", name)
	return x
}

// mlp is the layers in and out with an activation between them.
func (g *Graph) mlp(in, out, activation, x string) string {
	return g.linear(out, g.activated(activation, g.linear(in, x)))
}

// unit is x with the rows of its last axis divided by their lengths.
func (g *Graph) unit(x string) string {
	n := g.op("ReduceL2", on(x), ints("axes", -1), attribute{"keepdims", 1})
	return g.op("Div", on(x, g.op("Max", on(n, g.number(1e-12)))))
}

// split cuts the layer name, of queries, keys and values, of x (B, T, D) into those of heads, (B, H, T, D/H) each.
func (g *Graph) split(name, x string, heads int) (q, k, v string) {
	qkv := g.reshape(g.linear(name, x), 0, 0, 3, heads, -1)
	parts := g.several("Split", 3, on(g.transpose(qkv, 2, 0, 3, 1, 4)), attribute{"axis", 0})
	for i, p := range parts {
		parts[i] = g.op("Squeeze", on(p, g.ints(0)))
	}
	return parts[0], parts[1], parts[2]
}

// attend is attention of queries q (B, H, Tq, D/H) to keys and values: (B, Tq, D). bias, empty for none, is added to
// what the softmax is taken of.
func (g *Graph) attend(q, k, v, bias string, width, heads int) string {
	score := g.op("MatMul", on(q, g.transpose(k, 0, 1, 3, 2)))
	score = g.times(score, g.number(float32(1/math.Sqrt(float64(width/heads)))))
	if bias != "" {
		score = g.plus(score, bias)
	}
	p := g.op("Softmax", on(score), attribute{"axis", -1})
	return g.reshape(g.transpose(g.op("MatMul", on(p, v)), 0, 2, 1, 3), 0, 0, width)
}

// attention is self-attention of x (B, T, D), whose layers are in and out.
func (g *Graph) attention(in, out, x, bias string, width, heads int) string {
	q, k, v := g.split(in, x, heads)
	return g.linear(out, g.attend(q, k, v, bias, width, heads))
}

// repeated is a constant (1, n, D) for each row of a batch: (B, n, D). like has the batch.
func (g *Graph) repeated(x, like string, n, width int) string {
	return g.op("Expand", on(x, g.concat(0, g.size(like, 0), g.ints(n, width))))
}
