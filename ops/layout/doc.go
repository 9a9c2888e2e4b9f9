// Package layout moves rows and integers about and computes nothing: parts of sequences,
// rows at strides, concatenation, transposition, gathers of indices.
package layout
