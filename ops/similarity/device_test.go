package similarity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pool"
	"github.com/geoalign/geoalign/ops/similarity/internal/oncuda"
	"gorgonia.org/gorgonia"
)

// TestCUDA runs the ops of this package on the device.
func TestCUDA(t *testing.T) {
	cases := slices.Concat(productCases(), columnCases(), metricCases(), rowCases(), distanceCases(), deviceCases())
	if !cudatest.Emulated(cudatest.Open(t)) {
		cases = append(cases, similarityCase("large: a queue", 256, 256, 65536, 256, 256+40000))
	}
	optest.CheckCUDA(t, cases)
}

// TestPairNetOnCUDA has all images in one block, and blocks of a few and of one.
func TestPairNetOnCUDA(t *testing.T) {
	before := oncuda.PairNetValues
	t.Cleanup(func() { oncuda.PairNetValues = before })
	r := rand.New(rand.NewPCG(54, 2))
	cases := pairNetCases()
	sizes := [][4]int{{1, 1, 1, 1}, {2, 3, 4, 5}, {7, 5, 6, 33}, {3, 40, 9, 2}, {13, 300, 3, 40}, {70, 1, 37, 64}}
	if !cudatest.Emulated(cudatest.Open(t)) {
		sizes = append(sizes, [4]int{256, 384, 64, 256}, [4]int{3, 40000, 64, 256})
	}
	for _, s := range sizes {
		cases = append(cases, optest.Case{Name: fmt.Sprintf("pair net %v", s), Inputs: pairNetInputs(r, s[0], s[1], s[2], s[3]), WRT: []int{0, 1, 2, 3, 4, 5},
			Build: buildPairNet, Jumps: s[1] > 300})
	}
	optest.CheckCUDA(t, cases)
	oncuda.PairNetValues = 4 * 65 * 96
	t.Run("small blocks", func(t *testing.T) { optest.CheckCUDA(t, cases[:len(sizes)+1]) })
	oncuda.PairNetValues = 1
	t.Run("image by image", func(t *testing.T) { optest.CheckCUDA(t, cases[:4]) })
}

// TestPairNetNaNOnCUDA: what is not a number is not one in the scores.
func TestPairNetNaNOnCUDA(t *testing.T) {
	in := pairNetInputs(rand.New(rand.NewPCG(54, 3)), 3, 4, 5, 6)
	for operand := range in {
		broken := slices.Clone(in)
		values := slices.Clone(in[operand].Floats())
		values[len(values)-1] = float32(math.NaN())
		broken[operand] = optest.In(in[operand].Name, in[operand].Shape, values)
		optest.CheckCUDA(t, []optest.Case{{Name: in[operand].Name, Inputs: broken, WRT: []int{0, 1, 2, 3, 4, 5}, Build: buildPairNet}})
	}
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
	for _, d := range []Distance{{"l2", 1}, {"angle", 1}, {"angle", 3}, {"angle", 21}} {
		for _, test := range []struct {
			name       string
			b, n, q    int
			cols       int32
			withoutEnd bool // without cols
		}{
			{"keys alone", 70, 66, 0, 0, true}, {"not all keys", 70, 66, 0, 31, false}, {"no column", 3, 5, 0, 0, false},
			{"queue", 9, 7, 130, 0, true}, {"queue, not full", 9, 7, 130, 90, false}, {"queue with less than the keys", 9, 7, 20, 4, false},
		} {
			in := []optest.Input{optest.In("f", []int{test.b, 21}, sphereRows(r, test.b, 21, d.Spheres)), optest.In("keys", []int{test.n, 21}, sphereRows(r, test.n, 21, d.Spheres)),
				optest.I32s("cols", []int32{test.cols}), optest.In("queue", []int{max(test.q, 1), 21}, sphereRows(r, max(test.q, 1), 21, d.Spheres))}
			cases = append(cases, optest.Case{Name: fmt.Sprintf("distance %v, %s", d, test.name), Inputs: in, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				queue, cols := ns[3], ns[2]
				if test.q == 0 {
					queue = nil
				}
				if test.withoutEnd {
					cols = nil
				}
				return NegativeDistance(d, ns[0], ns[1], queue, cols)
			}})
		}
	}
	for _, pointer := range []int32{0, 50, 89, 95} {
		in := []optest.Input{f("f", 9, 12), f("keys", 11, 12), f("queue", 100, 12), optest.I32s("pointer", []int32{pointer}), optest.I32s("cols", []int32{97})}
		cases = append(cases, optest.Case{Name: fmt.Sprintf("distance from a pool at %d", pointer), Inputs: in, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return PoolNegativeDistance(Distance{"l2", 1}, ns[0], pool.Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3], Cols: ns[4]})
		}})
	}
	return cases
}
