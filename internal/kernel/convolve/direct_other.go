//go:build !amd64 && !arm64

package convolve

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// direct is the convolution by tiles, which this processor lacks.
type direct struct{}

func newDirect(*gemm.Tiled, *pass, int) *direct { return nil }

// compute is never called.
func (*direct) compute(Engine, []float32, []float32, []float32, bool, After, []float32) {}
