// Package optest holds the proofs that tests of ops share: gradients against finite
// differences, PyTorch's values, hashes, and runs that allocate nothing, give the same bits
// on any number of threads and write every element.
package optest
