// Package attention has multi-head attention of sequences to themselves and to others, each
// one op forward and one backward, with lengths, a key sequence for each row, and dropout.
package attention
