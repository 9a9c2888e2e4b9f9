package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestCUDA multiplies by pools of every layout on the device: with and without an end, batches that wrap around or fill all.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 2))
	cases := poolCases()
	add := func(name string, b, batch, n, width, pointer, cols int) {
		in := []optest.Input{optest.F32s(r, "f", b, width), optest.F32s(r, "keys", batch, width), optest.F32s(r, "queue", n, width), optest.I32s("pointer", []int32{int32(pointer)})}
		if cols >= 0 {
			in = append(in, optest.I32s("cols", []int32{int32(cols)}))
		}
		cases = append(cases, optest.Case{Name: name, Inputs: in, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			p := Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3]}
			if cols >= 0 {
				p.Cols = ns[4]
			}
			return Similarity(ns[0], p)
		}})
	}
	for i, c := range [][6]int{{1, 1, 1, 1, 0, -1}, {3, 2, 5, 7, 4, -1}, {3, 5, 5, 12, 3, -1}, {5, 4, 33, 31, 30, 20}, {5, 4, 33, 32, 7, 9}, {2, 3, 30, 5, 10, 0}} {
		add(fmt.Sprintf("pool %d", i), c[0], c[1], c[2], c[3], c[4], c[5])
	}
	if !cudatest.Emulated(cudatest.Open(t)) {
		add("large pool", 256, 256, 65536, 256, 65400, 65500)
	}
	optest.CheckCUDA(t, cases)
}
