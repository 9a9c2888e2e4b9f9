// Package recurrent has the gated recurrent unit over batches of sequences of different lengths, and one that attends
// to a memory.
//
// Letters: R sequences of L places, M places of a memory, I channels of a token, H of a state, T tokens of all
// sequences together.
//
// Sequences are sorted by length and their tokens packed, step by step: the rows of step t are
// those of the sequences with more than t tokens, the longest first. So each step multiplies
// the states of the sequences that go on, and places beyond a length cost nothing.
package recurrent
