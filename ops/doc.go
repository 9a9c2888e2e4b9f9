// Package ops is the root of the differentiable operations that models are built from. It
// has no code of its own:
//
//	op          what an operation is, and how one becomes a node
//	arith       sums, multiples, reductions
//	nn          layers of transformers
//	conv        convolutions and pooling over places of images
//	exchange    rows of other processes
//	layout      rows and indices moved about
//	attention   multi-head attention
//	recurrent   gated recurrent units over packed sequences
//	pool        a queue with a batch in it
//	similarity  products, distances and metrics of pairs
//	contrast    losses over scores, and their negatives
//	geodesic    scores along a graph over the queue
//	geometric   the regulariser of neighbourhoods
//	relation    what rows are to each other in two spaces: transport plans, random walks
//	interaction scores of images and texts by all their tokens
//
// Every function puts one node into the Gorgonia graph of its operands; the
// gradient is made of further ops, so gorgonia.Grad works on any graph of them.
// The ops are coarse (a linear layer, a whole attention) and each is one tight
// kernel: graphs stay small, and package internal/exec runs them without
// allocating.
//
// Shape letters used throughout:
//
//	B  batch            L  tokens of a text      P  tokens of an image
//	D  width            H  heads                 C  channels of the shared space
//	Q  queue entries    V  vocabulary            R  rows (any product of axes)
//
// Sequences are kept flat: B texts of L tokens are a (B*L, D) matrix. Integer operands are
// int32 nodes. A scalar has shape ().
//
// The functions panic with *op.BuildError when shapes do not fit, so that formulas
// stay readable; the function that returns the finished graph turns the panic
// into an error with op.Catch.
package ops
