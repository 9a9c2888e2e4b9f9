// Package oncuda has the steps of scores of pairs, and of the primitives that they are made of, for the CUDA device.
package oncuda

import "embed"

//go:embed *.cu
var files embed.FS
