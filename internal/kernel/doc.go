// Package kernel holds the CPU kernels that the ops are made of: matrix products
// by a library found at run time (oneDNN, OpenBLAS) or built in, a worker pool
// with a fixed way of splitting work, and vector kernels.
//
// Everything is float32, dense and row-major. The same inputs, thread count and
// backend give the same bits.
package kernel
