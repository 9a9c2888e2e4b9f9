package ops

import (
	"math/rand/v2"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
)

// BenchmarkElements times ops with their gradients through the executor at the
// shapes of a training step of a small model. The metrics
// are microseconds of each kind of op.
func BenchmarkElements(b *testing.B) {
	r := rand.New(rand.NewPCG(17, 18))
	key := i32s("key", []int32{3, 4}, 2)
	x, wide, text := f32s(r, "x", 2080, 384), f32s(r, "wide", 2080, 1536), f32s(r, "text", 3840, 384)
	gamma, beta := f32s(r, "gamma", 384), f32s(r, "beta", 384)
	table := f32s(r, "table", 30522, 384)
	ids := i32s("ids", randomInts(r, 3840, 30522), 3840)
	for _, c := range []opCase{
		{name: "add", inputs: []input{x, f32s(r, "y", 2080, 384)}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Add(ns[0], ns[1]) }},
		{name: "layer norm", inputs: []input{x, gamma, beta}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-6) }},
		{name: "layer norm gradient", inputs: []input{x, gamma, beta}, wrt: []int{0, 1, 2},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-6) }},
		{name: "gelu", inputs: []input{wide}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return GELU(ns[0]) }},
		{name: "gelu gradient", inputs: []input{wide}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return GELU(ns[0]) }},
		{name: "dropout bits", inputs: []input{key}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 1, 3840, 384, 0.9) }},
		{name: "dropout", inputs: []input{text, key}, build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Dropout(ns[0], DropoutBits(ns[1], 1, 3840, 384, 0.9), 0.9)
		}},
		{name: "dropout gradient", inputs: []input{text, key}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Dropout(ns[0], DropoutBits(ns[1], 1, 3840, 384, 0.9), 0.9)
		}},
		{name: "embed gradient", inputs: []input{table, ids}, wrt: []int{0}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }},
		{name: "add positions", inputs: []input{text, f32s(r, "positions", 512, 384)},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 30) }},
		{name: "add positions gradient", inputs: []input{text, f32s(r, "positions", 512, 384)}, wrt: []int{0, 1},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 30) }},
		{name: "add one row to all, gradient", inputs: []input{text, f32s(r, "types", 2, 384)}, wrt: []int{0, 1},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 1) }},
		{name: "patchify", inputs: []input{f32s(r, "images", 32, 3, 128, 128)}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Patchify(ns[0], 16) }},
		{name: "prepend token", inputs: []input{x, gamma}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return PrependToken(ns[0], ns[1], 65) }},
		{name: "l2 normalize", inputs: []input{text}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 1e-12) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			m, _ := c.compile(b, testEngine)
			if err := m.RunAll(); err != nil {
				b.Fatal(err)
			}
			m.ResetProfile()
			for b.Loop() {
				if err := m.RunAll(); err != nil {
					b.Fatal(err)
				}
			}
			p := m.Profile()
			for _, k := range p.Kinds {
				b.ReportMetric(float64(k.Time.Microseconds())/float64(p.Runs), strings.ReplaceAll(k.Kind, " ", "-")+"-us")
			}
		})
	}
}
