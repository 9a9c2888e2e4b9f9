//go:build !amd64 && !arm64

package convolve

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// filterTiles are the gradients of weights by tiles, which this processor lacks.
type filterTiles struct{}

func newFilterTiles(*gemm.Tiled, Sizes, int) *filterTiles { return nil }

// compute is never called.
func (*filterTiles) compute(Engine, []float32, []float32, []float32, bool, []float32) {}
