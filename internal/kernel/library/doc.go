// Package library finds matrix libraries at run time, without cgo: oneDNN, OpenBLAS and MKL. A
// library is tested before it is used, after dynlib.ProbeInChild in a child process.
package library
