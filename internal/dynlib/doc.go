// Package dynlib loads shared libraries at run time, without cgo, and tries them in a child process
// first, so that a library that crashes, hangs or is another one than its name says is passed over.
// The BLAS of arm64, CUDA, MPI and the JPEG decoder come this way; the decoder alone is tried in a child.
// Start begins such a process for other work that a library may not survive.
package dynlib
