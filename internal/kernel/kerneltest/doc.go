// Package kerneltest has what tests of kernels share: every instruction set in turn, memory
// between pages that must not be touched, and a clock of this thread.
package kerneltest
