package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// TestCUDALinear runs linear layers, activations and their gradients on the device.
func TestCUDALinear(t *testing.T) {
	names := []string{"linear", "linear part", "linear gelu", "linear gelu_tanh", "quick_gelu alone", "swiglu", "gelu", "gelu dropout", "gelu dropout of whole words", "relu", "tanh", "silu"}
	var cases []optest.Case
	for _, c := range nnCases() {
		if slices.Contains(names, c.Name) {
			cases = append(cases, c)
		}
	}
	cases = append(cases, linearDeviceCases()...)
	if !cudatest.Emulated(cudatest.Open(t)) {
		cases = append(cases,
			linearChain("large: feed-forward", 8224, 768, 3072, "gelu"), linearChain("large: vocabulary", 600, 768, 30522, "gelu"),
			linearChain("large: quick", 8224, 512, 2048, "quick_gelu"))
	}
	optest.CheckCUDA(t, cases)
}

// linearChain is two layers with an activation between them, after another layer and before one more: so products read and write
// results in bfloat16, where they are in it. Results of a layer are as large as its operand, so that the activation is where it bends.
func linearChain(name string, rows, d, hidden int, activation string) optest.Case {
	r := rand.New(rand.NewPCG(51, uint64(hidden)))
	f := func(name string, shape ...int) optest.Input { return optest.F32s(r, name, shape...) }
	w := func(name string, to, from int) optest.Input {
		in := f(name, to, from)
		for i, v := range in.Floats() {
			in.Floats()[i] = v * float32(math.Sqrt(3/float64(from)))
		}
		return in
	}
	return optest.Case{
		Name: name,
		Inputs: []optest.Input{
			f("x", rows, d), w("w0", d, d), f("b0", d), w("w1", hidden, d), f("b1", hidden), w("w2", d, hidden), f("b2", d), w("w3", 8, d),
		},
		WRT: []int{0, 1, 2, 3, 4, 5, 6, 7},
		Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			x := Linear(ns[0], ns[1], ns[2])
			x = Linear(LinearActivated(x, ns[3], ns[4], activation), ns[5], ns[6])
			return Linear(x, ns[7], nil)
		},
	}
}

// linearDeviceCases are shapes that a device has ways of its own for.
func linearDeviceCases() (cases []optest.Case) {
	r := rand.New(rand.NewPCG(52, 1))
	f := func(name string, shape ...int) optest.Input { return optest.F32s(r, name, shape...) }
	for of := vector.ByGELU; of <= vector.BySiLU; of++ {
		name := of.String()
		cases = append(cases,
			linearChain("chain by "+name, 70, 64, 96, name), linearChain("odd chain by "+name, 33, 27, 35, name),
			optest.Case{Name: "forward alone by " + name, Inputs: []optest.Input{f("x", 30, 50), f("w", 41, 50), f("b", 41)},
				Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LinearActivated(ns[0], ns[1], ns[2], name) }},
			optest.Case{Name: "forward chain by " + name, Inputs: []optest.Input{f("x", 30, 50), f("w", 40, 50), f("b", 40), f("w2", 9, 40)},
				Build: func(ns gorgonia.Nodes) *gorgonia.Node {
					return Linear(LinearActivated(ns[0], ns[1], ns[2], name), ns[3], nil)
				}},
			optest.Case{Name: name + " alone", Inputs: []optest.Input{f("x", 77)}, WRT: []int{0},
				Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Activated(ns[0], name) }})
	}
	for _, c := range []struct{ rows, inner, cols int }{{1, 1, 1}, {1, 768, 5}, {3, 2, 1}, {130, 8, 768}} {
		cases = append(cases, optest.Case{
			Name:   fmt.Sprintf("linear %d x %d x %d", c.rows, c.inner, c.cols),
			Inputs: []optest.Input{f("x", c.rows, c.inner), f("w", c.cols, c.inner), f("b", c.cols)}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) },
		})
	}
	for _, part := range [][2]int{{0, 24}, {24, 24}, {7, 30}} {
		cases = append(cases, optest.Case{
			Name:   fmt.Sprintf("parts at %d of a chain", part[0]),
			Inputs: []optest.Input{f("x", 40, 48), f("w0", 48, 48), f("w", 72, 48), f("b", 72), f("w1", 10, part[1])}, WRT: []int{0, 1, 2, 3, 4},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Linear(LinearPart(Linear(ns[0], ns[1], nil), ns[2], ns[3], part[0], part[1]), ns[4], nil)
			},
		})
	}
	return append(cases,
		// The gradients of one layer's weights and of its operand are sums of two: the second product is added to the first.
		optest.Case{Name: "gradients that accumulate", Inputs: []optest.Input{f("x", 40, 24), f("w", 24, 24), f("b", 24), f("w1", 24, 24)}, WRT: []int{0, 1, 2, 3},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				x := Linear(ns[0], ns[1], ns[2])
				return Linear(Linear(Linear(x, ns[1], ns[2]), ns[3], nil), ns[1], ns[2])
			}},
		optest.Case{Name: "parts that accumulate", Inputs: []optest.Input{f("x", 40, 24), f("w", 72, 24), f("b", 72)}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				x := LinearPart(ns[0], ns[1], ns[2], 0, 24)
				return LinearPart(LinearPart(x, ns[1], ns[2], 24, 24), ns[1], ns[2], 48, 24)
			}},
		linearChain("rows that are not aligned", 1100, 8, 962, "gelu"), // as those of a vocabulary
		optest.Case{Name: "sums over many rows", Inputs: []optest.Input{f("x", 3000, 24)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return op.Apply(columnSums(5, 40), ns[0]) }},
		optest.Case{Name: "sums over many rows of odd width", Inputs: []optest.Input{f("x", 700, 33)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return op.Apply(columnSums(0, 33), ns[0]) }},
		optest.Case{Name: "sums over more rows than a multiple", Inputs: []optest.Input{f("x", 1537, 36)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return op.Apply(columnSums(1, 37), ns[0]) }},
		linearChain("sums of halves", 1100, 16, 72, "gelu"),
		optest.Case{Name: "sums over few rows of odd width", Inputs: []optest.Input{f("x", 9, 301)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return op.Apply(columnSums(0, 301), ns[0]) }},
		optest.Case{Name: "swiglu of an odd width", Inputs: []optest.Input{f("x", 13, 2*33)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SwiGLU(ns[0]) }},
		optest.Case{Name: "swiglu wide", Inputs: []optest.Input{f("x", 3, 2*2048)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SwiGLU(ns[0]) }},
	)
}
