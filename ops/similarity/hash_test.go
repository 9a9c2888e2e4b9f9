package similarity

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, s := h.M, h.S
	wide := layout.ConcatColumns(m, m)
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"similarity": {
			func() *gorgonia.Node { return Similarity(m, m, nil, nil) },
			func() *gorgonia.Node { return Similarity(m, m, m, nil) },
			func() *gorgonia.Node { return Similarity(m, m, nil, s) },
		},
		"fold columns": {
			func() *gorgonia.Node { return FoldColumns(wide, h.V, 0, 12) },
			func() *gorgonia.Node { return FoldColumns(wide, h.V, 12, 12) },
			func() *gorgonia.Node { return FoldColumns(wide, h.V, 0, 24) },
		},
	})
}
