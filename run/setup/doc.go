// Package setup opens what a run and the use of a checkpoint are made of: engine and kernels, tokenizer, the
// weights of other programs. It says where a configuration does not fit a checkpoint, or that of another rank.
package setup
