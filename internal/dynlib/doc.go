// Package dynlib loads shared libraries at run time, without cgo, and tries them in a child process
// first, so that a library that crashes, hangs or is another one than its name says is passed over.
// The matrix libraries, MPI and the JPEG decoder come this way. Start begins such a process for other
// work that a library may not survive.
package dynlib
