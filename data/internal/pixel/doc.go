// Package pixel holds the kernels of image decoding and augmentation: each as
// plain Go and, on amd64, as assembly for AVX2 and AVX-512 that gives the same
// bits. The instruction set is chosen at start; GEOALIGN_CPU (plain, avx2, avx512)
// lowers it, as for the kernels of the engine.
//
// Images are 8-bit RGB with rows without gaps. The functions panic when a slice is
// too short for the sizes that it comes with, which is a fault of the caller.
package pixel

//go:generate go run ./gen -out pixel_amd64.s -stubs pixel_amd64.go -pkg pixel
