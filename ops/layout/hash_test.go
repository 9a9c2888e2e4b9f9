package layout

import (
	"maps"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, key, bits := h.M, h.Key, h.Bits
	groups := map[string][]func() *gorgonia.Node{
		"strided rows": {
			func() *gorgonia.Node { return StridedRows(m, 0, 2, 3) },
			func() *gorgonia.Node { return StridedRows(m, 1, 2, 3) },
			func() *gorgonia.Node { return StridedRows(m, 0, 3, 3) },
			func() *gorgonia.Node { return StridedRows(m, 0, 2, 4) },
		},
		"strided rows dx": {
			optest.Variant(spreadRows(40, 0, 2, 12), m), optest.Variant(spreadRows(41, 0, 2, 12), m), optest.Variant(spreadRows(40, 1, 2, 12), m), optest.Variant(spreadRows(40, 0, 3, 12), m),
		},
		"column range": {optest.Variant(columnRange(0, 3), m), optest.Variant(columnRange(1, 3), m), optest.Variant(columnRange(0, 4), m)},
		"numbers":      {func() *gorgonia.Node { return LastRows(bits, 4) }, func() *gorgonia.Node { return LastRows(bits, 5) }, func() *gorgonia.Node { return Numbers(bits) }},
		"full lengths": {func() *gorgonia.Node { return FullLengths(bits, 1) }, func() *gorgonia.Node { return FullLengths(bits, 2) }},
		"ints":         {func() *gorgonia.Node { return GatherInts(bits, key) }, func() *gorgonia.Node { return ConcatInts(bits, key) }},
	}
	maps.Copy(groups, sequenceVariants(m, bits))
	optest.CheckHashes(t, groups)
}
