// Package op is what an operation of the packages beside it is made of: Op describes one,
// Apply makes a node of it, and small functions check shapes and share out work.
//
// Apply panics with *BuildError when shapes do not fit, so that formulas stay readable;
// the function that returns the finished graph turns the panic into an error with Catch.
package op
