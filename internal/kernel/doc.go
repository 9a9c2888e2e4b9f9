// Package kernel is the engine that the ops compute with: matrix products by a library
// found at run time (oneDNN, OpenBLAS, MKL) or built in, and a worker pool with a fixed way
// of splitting work. What it is made of lies below it:
//
//	tune      keeps which kernel is best for a product
//	library   finds and calls matrix libraries
//	gemm      the built-in products, packed and tiled
//	attend    attention of one head
//	convolve  convolutions and their gradients
//	vector    loops over values
//	cpu       instruction sets
//
// Everything is float32, dense and row-major; only the operands of a product may be
// bfloat16 (Engine.Multiply), with sums in float32. The same inputs, thread count and
// backend give the same bits: work is split by shape and thread count alone, no
// sum is split over threads, and a library is told to use one thread a call. With Options.Tune the kernel
// of a large product is chosen among all that are found when it is first computed (choose.go, measure.go), and then
// stays: the same choices are a part of what gives the same bits (Engine.Chosen, Engine.Follow).
//
//	e, err := kernel.New(kernel.Options{}) // best backend, all processors
//	if err != nil { ... }
//	defer e.Close()
//	e.Gemm(false, true, m, n, k, 1, x, k, w, k, 0, y, n) // y = x w^T
//	e.For(rows, 16, body)                                // body(worker, lo, hi)
//
// Libraries are loaded without cgo. A file that does not load, or whose product
// fails a self-test, is passed over with a warning that Engine.Describe, library.Probe
// and Engine.Warnings show. After dynlib.ProbeInChild that holds for a library that
// crashes or hangs as well. These variables help to find or to avoid something:
//
//	GEOALIGN_ONEDNN, GEOALIGN_OPENBLAS, GEOALIGN_MKL   the library's file
//	GEOALIGN_CPU   plain, avx2, avx512 or amx: the highest instruction set to use
package kernel
