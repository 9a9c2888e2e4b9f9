// Package pairs scores all pairs of sequences of two sides by a computation over their tokens, which is written for one
// block of pairs with some twenty primitives and differentiated by Gorgonia.
//
// Scores cuts both sides into blocks, packs the tokens that take part, runs the computation for each block of one side
// with each of the other, and makes it again in the backward pass, where gradients of rows are added up. So memory
// is that of a block, whatever the number of pairs.
//
// In the computation a Matrix has a row for each token of one side of the block, for each of its sequences or for all
// of it, and its columns are so of the other side. Primitives broadcast the coarser of two operands and reduce over the
// tokens of a sequence.
package pairs
