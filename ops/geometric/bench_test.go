package geometric

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// BenchmarkGeometric times one modality of a step at a batch of 32, 15 of 80 neighbours in
// a queue of 4,096: features of 384 before a head of 256, and of 16*384 before an oblique
// head of 16 times 16.
func BenchmarkGeometric(b *testing.B) {
	const rows, queue, k, near = 32, 4096, 16, 80
	for _, h := range []struct {
		name        string
		tokens, out int
	}{{"sphere", 1, 256}, {"oblique", 16, 16}} {
		r := rand.New(rand.NewPCG(61, 1))
		width := h.tokens * 384
		search := nearCase{b: rows, q: queue, width: width, filled: queue, near: near, count: k - 1, law: Biased}
		clustered := search
		clustered.clusters, clustered.used, clustered.candidates = 64, 64, 512
		loss := geomCase{b: rows, q: queue, k: k, d: 384, out: h.out, tokens: h.tokens, groups: h.tokens, bias: true,
			o: Options{Kernel: Heat, Epsilon: .8, Scale: Unit}}
		for _, c := range []struct {
			name   string
			inputs []optest.Input
			wrt    []int
			build  func(ns gorgonia.Nodes) *gorgonia.Node
		}{
			{"neighbours", search.inputs(r), nil, search.build},
			{"neighbours in clusters", clustered.inputs(r), nil, clustered.build},
			{"loss", loss.inputs(r), []int{3, 4}, loss.build},
		} {
			b.Run(h.name+" "+c.name, func(b *testing.B) {
				m, _ := optest.Case{Inputs: c.inputs, WRT: c.wrt, Build: c.build}.Compile(b, optest.Engine)
				for b.Loop() {
					check.OK(b, m.RunAll())
				}
			})
		}
	}
}
