// Package expr makes ops of the expression of one element. A Value says what an element of the result is, of the elements of the
// operands at its place; Apply makes of it an op with its gradient, its step on the host and its step on the CUDA device.
//
//	func SquaredReLU(x *gorgonia.Node) *gorgonia.Node {
//		return expr.Apply(expr.Op{Kind: "squared relu", Value: expr.X(0).ReLU().Square()}, x)
//	}
//
// On the host an expression is a list of kernels of package vector, which run one after the other on pieces that the first cache
// holds. On the device it is one kernel, of which operands are read once. What is read more than once, weighs heavily in a step or
// sums over elements is an op by hand.
package expr
