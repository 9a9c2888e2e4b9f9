package similarity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestCUDA runs the ops of this package on the device.
func TestCUDA(t *testing.T) {
	cases := slices.Concat(productCases(), columnCases(), metricCases(), rowCases(), deviceCases())
	if !cudatest.Emulated(cudatest.Open(t)) {
		cases = append(cases, similarityCase("large: a queue", 256, 256, 65536, 256, 256+40000))
	}
	optest.CheckCUDA(t, cases)
}

// similarityCase is products of b rows of width columns with n keys and a queue, none where q is 0, of which cols columns exist, all
// where it is negative.
func similarityCase(name string, b, n, q, width, cols int) optest.Case {
	r := rand.New(rand.NewPCG(53, uint64(b*n+q)))
	inputs := []optest.Input{optest.F32s(r, "f", b, width), optest.F32s(r, "keys", n, width)}
	queue, count := -1, -1
	if q > 0 {
		queue = len(inputs)
		inputs = append(inputs, optest.F32s(r, "queue", q, width))
	}
	if cols >= 0 {
		count = len(inputs)
		inputs = append(inputs, optest.I32s("cols", []int32{int32(cols)}))
	}
	return optest.Case{Name: name, Inputs: inputs, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
		at := func(i int) *gorgonia.Node {
			if i < 0 {
				return nil
			}
			return ns[i]
		}
		return Similarity(ns[0], ns[1], at(queue), at(count))
	}}
}

func deviceCases() []optest.Case {
	r := rand.New(rand.NewPCG(54, 1))
	f := func(name string, shape ...int) optest.Input { return optest.F32s(r, name, shape...) }
	cases := []optest.Case{
		similarityCase("keys alone", 33, 20, 0, 24, -1),
		similarityCase("keys alone of one column", 5, 1, 0, 7, -1),
		similarityCase("keys, not all", 33, 20, 0, 24, 11),
		similarityCase("no column", 9, 8, 0, 16, 0),
		similarityCase("queue", 16, 16, 48, 32, -1),
		similarityCase("queue of odd sizes", 17, 13, 41, 19, -1),
		similarityCase("queue that is not full", 16, 16, 48, 32, 40),
		similarityCase("queue that is not begun", 16, 16, 48, 32, 16),
		similarityCase("queue with less than the keys", 16, 16, 48, 32, 9),
		similarityCase("full queue", 16, 16, 48, 32, 64),
		similarityCase("wide", 3, 700, 2100, 12, 2500),
		{Name: "row products", Inputs: []optest.Input{f("x", 60, 70), f("y", 12, 70)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return RowProducts(ns[0], ns[1]) }},
		{Name: "row products one to one", Inputs: []optest.Input{f("x", 9, 300), f("y", 9, 300)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return RowProducts(ns[0], ns[1]) }},
		{Name: "diagonal", Inputs: []optest.Input{f("x", 65, 70), f("w", 70)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Diagonal(ns[0], ns[1]) }},
	}
	for _, transposed := range []bool{false, true} {
		for _, shape := range [][]int{{24, 24}, {4, 6, 6}, {1, 24, 24}, {24, 1, 1}} {
			cases = append(cases, optest.Case{
				Name: fmt.Sprintf("block diagonal %v %v", shape, transposed), Inputs: []optest.Input{f("x", 31, 24), f("w", shape...)}, WRT: []int{0, 1},
				Build: func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], transposed) },
			})
		}
	}
	for _, shape := range [][]int{{8}, {16}, {8, 8}, {2, 4, 4}, {4, 4, 4}, {5, 1, 1}} { // of heads, and of one as wide as the columns
		width := 16
		if shape[0] == 5 {
			width = 15
		}
		cases = append(cases, optest.Case{
			Name: fmt.Sprintf("fold columns %v", shape), Inputs: []optest.Input{f("x", 37, 50), f("w", shape...)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return FoldColumns(ns[0], ns[1], 16, width) },
		})
	}
	return cases
}
