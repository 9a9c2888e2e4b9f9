package pool

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, s := h.M, h.S
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"pool columns": {
			func() *gorgonia.Node { return Columns(m, s, 3) },
			func() *gorgonia.Node { return Columns(m, s, 4) },
		},
		"pool similarity": {
			func() *gorgonia.Node { return Similarity(m, Pool{Keys: m, Queue: m, Pointer: s}) },
			func() *gorgonia.Node { return Similarity(m, Pool{Keys: m, Queue: m, Pointer: s, Cols: s}) },
			func() *gorgonia.Node { return Gradient(m, Pool{Keys: m, Queue: m, Pointer: s}) },
			func() *gorgonia.Node { return Gradient(m, Pool{Keys: m, Queue: m, Pointer: s, Cols: s}) },
		},
	})
}
