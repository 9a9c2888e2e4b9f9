package relation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestCUDA walks among few and many rows, one step and several. Transport plans are made on the host.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 1))
	sizes := [][2]int{{1, 1}, {2, 3}, {31, 1}, {70, 2}, {64, 4}}
	if !cudatest.Emulated(cudatest.Open(t)) {
		sizes = append(sizes, [2]int{1024, 3})
	}
	var cases []optest.Case
	for _, s := range sizes {
		n, hops := s[0], s[1]
		cases = append(cases, optest.Case{Name: fmt.Sprintf("%d hops of %d rows", hops, n), WRT: []int{0},
			Inputs: []optest.Input{optest.F32s(r, "scores", n, n), optest.F32s(r, "target", n, n)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return HopDivergence(HopArgs{Scores: ns[0], Target: ns[1], Temperature: .5, TargetTemperature: .7, Hops: hops})
			}})
	}
	optest.CheckCUDA(t, cases, "times", "mul scalar", "combine")
}
