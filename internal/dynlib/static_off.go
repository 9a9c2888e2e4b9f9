//go:build !static

package dynlib

// Static says that this program is built with the tag static: it needs no C library to start,
// loads no others, and has the built-in kernels and decoders alone.
const Static = false
