package layout

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestCUDA moves rows, columns and numbers on the device: widths that are multiples of four and others, and gradients that are
// added to others.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	cases := append(sequenceCases(), numberCases(r)...)
	for _, s := range []struct {
		name    string
		n, cols int
	}{{"one column", 1, 1}, {"narrow", 5, 3}, {"wide", 3, 768}, {"large", 128, 768}} {
		if s.name != "large" || !cudatest.Emulated(cudatest.Open(t)) {
			cases = append(cases, movingCases(r, s.name, s.n, s.cols)...)
		}
	}
	optest.CheckCUDA(t, cases, "gelu", "gelu dx", "l2 normalize", "l2 normalize dx", "linear", "linear dx", "linear dw")
}

// movingCases are ops on n sequences of 50 rows of x and of 7 of y.
func movingCases(r *rand.Rand, name string, n, cols int) (cases []optest.Case) {
	in := []optest.Input{optest.F32s(r, "x", n*50, cols), optest.F32s(r, "y", n*7, cols), optest.F32s(r, "w", 8, cols)}
	for _, c := range []struct {
		name  string
		wrt   []int
		build func(x, y, w *gorgonia.Node) *gorgonia.Node
	}{
		{"strided rows", []int{0}, func(x, _, _ *gorgonia.Node) *gorgonia.Node { return StridedRows(x, 3, 7, (n*50-4)/7+1) }},
		{"first tokens", []int{0}, func(x, _, _ *gorgonia.Node) *gorgonia.Node { return StridedRows(x, 0, 50, n) }},
		{"last tokens", []int{0}, func(x, _, _ *gorgonia.Node) *gorgonia.Node { return SequenceRows(x, 50, 49, 1) }},
		{"rest", []int{0}, func(x, _, _ *gorgonia.Node) *gorgonia.Node { return SequenceRest(x, 50, 3, 40) }},
		{"parts whose gradients are added", []int{0}, func(x, _, _ *gorgonia.Node) *gorgonia.Node {
			z := nn.GELU(x)
			return ConcatRows(ConcatRows(StridedRows(z, 1, 3, n*16), SequenceRest(z, 50, 0, 3)), SequenceRows(z, 50, 2, 30))
		}},
		{"insert in front", []int{0, 1}, func(x, y, _ *gorgonia.Node) *gorgonia.Node { return InsertRows(x, y, 50, 7, 0) }},
		{"insert behind all", []int{0, 1}, func(x, y, _ *gorgonia.Node) *gorgonia.Node { return InsertRows(x, y, 50, 7, 50) }},
		{"concat rows", []int{0, 1}, func(x, y, _ *gorgonia.Node) *gorgonia.Node { return ConcatRows(x, y) }},
		{"concat columns", []int{0, 1}, func(x, y, _ *gorgonia.Node) *gorgonia.Node { return ConcatColumns(StridedRows(x, 2, 3, n*7), y) }},
		{"concat columns of two widths", []int{0, 1}, func(x, y, _ *gorgonia.Node) *gorgonia.Node {
			return ConcatColumns(Reshape(x, n*10, 5*cols), StridedRows(ConcatRows(y, y), 4, 1, n*10))
		}},
		{"transpose", []int{0}, func(x, _, _ *gorgonia.Node) *gorgonia.Node { return Transpose(x) }},
		{"transpose for a product", []int{0, 2}, func(x, _, w *gorgonia.Node) *gorgonia.Node { // in bfloat16 where products are
			return nn.Linear(Transpose(Transpose(x)), w, nil)
		}},
	} {
		cases = append(cases, optest.Case{Name: name + "/" + c.name, Inputs: in, WRT: c.wrt,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return c.build(ns[0], ns[1], ns[2]) }})
	}
	return cases
}

// numberCases are ops on whole numbers beside those of sequenceCases.
func numberCases(r *rand.Rand) (cases []optest.Case) {
	in := []optest.Input{optest.I32s("x", optest.RandomInts(r, 300, 31), 300), optest.I32s("one", []int32{-7})}
	for name, build := range map[string]func(x, one *gorgonia.Node) *gorgonia.Node{
		"add to a scalar": func(_, one *gorgonia.Node) *gorgonia.Node { return AddInt(one, -3) },
		"add to all":      func(x, _ *gorgonia.Node) *gorgonia.Node { return AddInt(x, 1<<30) },
		"concat of nine": func(x, _ *gorgonia.Node) *gorgonia.Node {
			return ConcatInts(x, x, AddInt(x, 1), x, x, AddInt(x, 2), x, x, x)
		},
		"last rows":            func(x, _ *gorgonia.Node) *gorgonia.Node { return LastRows(x, 30) },
		"numbers":              func(x, _ *gorgonia.Node) *gorgonia.Node { return Numbers(x) },
		"full lengths":         func(x, _ *gorgonia.Node) *gorgonia.Node { return FullLengths(x, 3) },
		"gather of other size": func(x, _ *gorgonia.Node) *gorgonia.Node { return GatherInts(x, ConcatInts(x, x)) },
		"no copies":            func(x, _ *gorgonia.Node) *gorgonia.Node { return RepeatFirst(x, 3, 0) },
	} {
		cases = append(cases, optest.Case{Name: name, Inputs: in, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return build(ns[0], ns[1]) }})
	}
	return cases
}
