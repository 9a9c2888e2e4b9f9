package op_test

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m := h.M
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"take": {
			func() *gorgonia.Node { return op.Take(m, 0, tensor.Shape{3}) },
			func() *gorgonia.Node { return op.Take(m, 1, tensor.Shape{3}) },
			func() *gorgonia.Node { return op.Take(m, 0, tensor.Shape{3, 1}) },
		},
		"detach": {func() *gorgonia.Node { return op.Detach(m) }, func() *gorgonia.Node { return op.Take(m, 0, m.Shape()) }},
	})
}
