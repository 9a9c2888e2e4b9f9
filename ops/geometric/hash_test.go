package geometric

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, v, s, bits, near := h.M, h.V, h.S, h.Bits, h.Near
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"geometric":  geometricVariants(m, near, v),
		"neighbours": neighbourVariants(m, bits, s),
	})
}
