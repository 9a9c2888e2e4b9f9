package similarity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestFoldColumns compares with the definition for diagonals, blocks and matrices, of each head and of all.
func TestFoldColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 1))
	for _, c := range []struct {
		rows, cols, from, width int
		w                       []int
	}{
		{3, 12, 4, 4, []int{4}}, {3, 12, 4, 4, []int{2}}, {70, 24, 8, 8, []int{4, 2, 2}}, {70, 24, 8, 8, []int{2, 2, 2}}, {5, 8, 0, 4, []int{1, 4, 4}},
		{5, 8, 4, 4, []int{4, 4}}, {130, 18, 6, 6, []int{3, 3}}, {2, 9, 3, 3, []int{1, 1}},
	} {
		in := []optest.Input{optest.F32s(r, "x", c.rows, c.cols), optest.F32s(r, "w", c.w...)}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return FoldColumns(ns[0], ns[1], c.from, c.width) }
		x, w := in[0].Floats(), in[1].Floats()
		want := slices.Clone(x)
		d := c.w[len(c.w)-1] // side of a block
		if len(c.w) == 1 {
			d = 1
		}
		for row := range c.rows {
			for i := range c.width {
				var sum float64
				for j := range d {
					at := i/d*d*d + i%d*d + j // of the blocks one after the other
					sum += float64(w[at%len(w)]) * float64(x[row*c.cols+c.from+i/d*d+j])
				}
				want[row*c.cols+c.from+i] = float32(sum)
			}
		}
		name := fmt.Sprint(c)
		optest.Near(t, name, optest.Eval(t, build, in...).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-1, 3e-3, in...)
		clear(w)
		for i := 0; i < len(w); i += d {
			w[i+i/d%d] = 1
		}
		if got := optest.Eval(t, build, in...).F32; !slices.Equal(got, x) {
			t.Errorf("%s: the identity changes its input", name)
		}
	}
}

func TestFoldColumnsErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 2))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 2, 6), optest.F32s(r, "w", 3), optest.F32s(r, "odd", 2, 3)})
	optest.BuildError(t, "fold columns", "with columns [4, 8)", func() { FoldColumns(ns[0], ns[1], 4, 4) })
	optest.BuildError(t, "fold columns", "want a diagonal (d)", func() { FoldColumns(ns[0], ns[2], 0, 6) })
	optest.BuildError(t, "fold columns", "3 blocks of 1 do not make up the heads of 4 columns", func() { FoldColumns(ns[0], ns[1], 0, 4) })
}

func columnCases() (list []optest.Case) {
	r := rand.New(rand.NewPCG(34, 3))
	x := optest.F32s(r, "x", 300, 96)
	for _, w := range [][]int{{32}, {8}, {2, 16, 16}, {8, 8}} {
		list = append(list, optest.Case{Name: fmt.Sprint("fold columns ", w), Inputs: []optest.Input{x, optest.F32s(r, "w", w...)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return FoldColumns(ns[0], ns[1], 32, 32) }})
	}
	return list
}
