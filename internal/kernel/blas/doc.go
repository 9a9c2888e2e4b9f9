// Package blas finds and calls Accelerate, the BLAS of macOS, which has matrix units of Apple's processors that no other
// program is told how to use. It is loaded at run time, without cgo.
package blas
