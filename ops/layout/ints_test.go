package layout

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestInts(t *testing.T) {
	x, idx := optest.I32s("x", []int32{7, 8, 9}, 3), optest.I32s("idx", []int32{2, 1, 0}, 3)
	for _, c := range []struct {
		name  string
		build func(ns gorgonia.Nodes) *gorgonia.Node
		want  []int32
	}{
		{"labels", func(ns gorgonia.Nodes) *gorgonia.Node { return contrast.NegativeLabels(ns[1]) }, []int32{0, -100, 0}},
		{"concat", func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatInts(ns[0], ns[1], ns[0]) }, []int32{7, 8, 9, 2, 1, 0, 7, 8, 9}},
		{"last rows", func(ns gorgonia.Nodes) *gorgonia.Node { return LastRows(ns[1], 4) }, []int32{1, 4, 8}},
		{"numbers", func(ns gorgonia.Nodes) *gorgonia.Node { return Numbers(ns[0]) }, []int32{0, 1, 2}},
		{"full lengths", func(ns gorgonia.Nodes) *gorgonia.Node { return FullLengths(ns[0], 3) }, []int32{3}},
		{"add", func(ns gorgonia.Nodes) *gorgonia.Node { return AddInt(ns[0], -2) }, []int32{5, 6, 7}},
		{"add to a scalar", func(ns gorgonia.Nodes) *gorgonia.Node { return AddInt(ns[2], 1) }, []int32{5}},
		{"gather", func(ns gorgonia.Nodes) *gorgonia.Node { return GatherInts(ns[0], ns[1]) }, []int32{9, 8, 7}},
	} {
		if got := optest.Eval(t, c.build, x, idx, optest.I32s("n", []int32{4})); !slices.Equal(got.I32, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got.I32, c.want)
		}
	}
	in := []optest.Input{x, optest.I32s("idx", []int32{3}, 1)}
	g, ns := optest.Nodes(in)
	m := optest.Machine(t, g, ns, in, GatherInts(ns[0], ns[1]))
	check.Error(t, m.RunAll(), "index 3 at 0")
}

func TestLastRowsErrors(t *testing.T) {
	for _, n := range []int32{-1, 4} {
		optest.RunError(t, "lengths[1] is", func(ns gorgonia.Nodes) *gorgonia.Node { return LastRows(ns[0], 3) }, optest.I32s("lengths", []int32{3, n}, 2))
	}
	_, ns := optest.Nodes([]optest.Input{optest.I32s("ids", make([]int32, 5), 5)})
	optest.BuildError(t, "full lengths", "multiple of 3", func() { FullLengths(ns[0], 3) })
}

// TestIntsFuzz compares random vectors with the definitions.
func TestIntsFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 4))
	for range 30 {
		n, rows := 1+r.IntN(70), 1+r.IntN(70)
		x, idx := optest.I32s("x", optest.RandomInts(r, n, 1<<30), n), optest.I32s("idx", optest.RandomInts(r, rows, n), rows)
		matrix := optest.F32s(r, "matrix", rows, 1+r.IntN(3))
		iota, gathered, labels := make([]int32, rows), make([]int32, rows), make([]int32, rows)
		for i, k := range idx.Data.([]int32) {
			iota[i], gathered[i] = int32(i), x.Data.([]int32)[k]
			if int(k) == i {
				labels[i] = -100
			}
		}
		parts := 1 + r.IntN(5)
		var joined []int32
		for i := range parts {
			joined = append(joined, []optest.Input{x, idx}[i%2].Data.([]int32)...)
		}
		concat := func(ns gorgonia.Nodes) *gorgonia.Node {
			var xs gorgonia.Nodes
			for i := range parts {
				xs = append(xs, ns[i%2])
			}
			return ConcatInts(xs...)
		}
		for name, c := range map[string]struct {
			build func(ns gorgonia.Nodes) *gorgonia.Node
			want  []int32
		}{
			"labels": {func(ns gorgonia.Nodes) *gorgonia.Node { return contrast.NegativeLabels(ns[1]) }, labels},
			"gather": {func(ns gorgonia.Nodes) *gorgonia.Node { return GatherInts(ns[0], ns[1]) }, gathered},
			"concat": {concat, joined},
		} {
			if got := optest.Eval(t, c.build, x, idx, matrix).I32; !slices.Equal(got, c.want) {
				t.Fatalf("%s of %d and %d: got %v, want %v", name, n, rows, got, c.want)
			}
		}
	}
}
