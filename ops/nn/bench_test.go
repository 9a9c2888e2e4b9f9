package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// BenchmarkElements times ops with their gradients through the executor at the
// shapes of a training step of a small model. See optest.Benchmark for the metrics.
func BenchmarkElements(b *testing.B) {
	r := rand.New(rand.NewPCG(17, 18))
	key := optest.I32s("key", []int32{3, 4}, 2)
	x, wide, text := optest.F32s(r, "x", 2080, 384), optest.F32s(r, "wide", 2080, 1536), optest.F32s(r, "text", 3840, 384)
	gamma, beta := optest.F32s(r, "gamma", 384), optest.F32s(r, "beta", 384)
	table := optest.F32s(r, "table", 30522, 384)
	ids := optest.I32s("ids", optest.RandomInts(r, 3840, 30522), 3840)
	for _, c := range []optest.Case{
		{Name: "add", Inputs: []optest.Input{x, optest.F32s(r, "y", 2080, 384)}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return arith.Add(ns[0], ns[1]) }},
		{Name: "layer norm", Inputs: []optest.Input{x, gamma, beta}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-6) }},
		{Name: "layer norm gradient", Inputs: []optest.Input{x, gamma, beta}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-6) }},
		{Name: "gelu", Inputs: []optest.Input{wide}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return GELU(ns[0]) }},
		{Name: "gelu gradient", Inputs: []optest.Input{wide}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return GELU(ns[0]) }},
		{Name: "dropout bits", Inputs: []optest.Input{key}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 1, 3840, 384, 0.9) }},
		{Name: "dropout", Inputs: []optest.Input{text, key}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Dropout(ns[0], DropoutBits(ns[1], 1, 3840, 384, 0.9), 0.9)
		}},
		{Name: "dropout gradient", Inputs: []optest.Input{text, key}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Dropout(ns[0], DropoutBits(ns[1], 1, 3840, 384, 0.9), 0.9)
		}},
		{Name: "embed gradient", Inputs: []optest.Input{table, ids}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }},
		{Name: "add positions", Inputs: []optest.Input{text, optest.F32s(r, "positions", 512, 384)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 30) }},
		{Name: "add positions gradient", Inputs: []optest.Input{text, optest.F32s(r, "positions", 512, 384)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 30) }},
		{Name: "add one row to all, gradient", Inputs: []optest.Input{text, optest.F32s(r, "types", 2, 384)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 1) }},
		{Name: "patchify", Inputs: []optest.Input{optest.F32s(r, "images", 32, 3, 128, 128)}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Patchify(ns[0], 16) }},
		{Name: "prepend token", Inputs: []optest.Input{x, gamma}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return PrependToken(ns[0], ns[1], 65) }},
		{Name: "l2 normalize", Inputs: []optest.Input{text}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 1e-12) }},
	} {
		b.Run(c.Name, func(b *testing.B) { optest.Benchmark(b, optest.Engine, c) })
	}
}
