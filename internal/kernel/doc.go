// Package kernel is the engine that the ops compute with: matrix products and a worker pool
// with a fixed way of splitting work. What it is made of lies below it:
//
//	gemm      the products, packed and tiled
//	blas      Accelerate, the BLAS of macOS
//	attend    attention of one head
//	convolve  convolutions and their gradients
//	vector    loops over values
//	cpu       instruction sets
//
// Everything is float32, dense and row-major; only the operands of a product may be
// bfloat16 (Engine.Multiply), with sums in float32. The same inputs, thread count and
// backend give the same bits: work is split by shape and thread count alone, no
// sum is split over threads, and a library is told to use one thread a call.
//
//	e, err := kernel.New(kernel.Options{}) // all processors
//	if err != nil { ... }
//	defer e.Close()
//	e.Gemm(false, true, m, n, k, 1, x, k, w, k, 0, y, n) // y = x w^T
//	e.For(rows, 16, body)                                // body(worker, lo, hi)
//
// Products are built in: AVX2, AVX-512, AVX-512 BF16 and AMX on amd64, NEON on arm64, plain Go elsewhere. On macOS on arm64
// Accelerate multiplies. A variable helps to avoid something:
//
//	GEOALIGN_CPU   plain, avx2, avx512 or amx, and plain or neon on arm64: the highest instruction set to use
package kernel
