package contrast

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestSampleNegativesOf: some rows of a batch have the negatives and the labels that they have in the whole, among logits with
// further columns.
func TestSampleNegativesOf(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 41))
	const b, m = 12, 15
	logits, noise := optest.F32s(r, "logits", b, m), optest.F32s(r, "noise", b, b)
	for i := range noise.Floats() {
		noise.Floats()[i] *= 5
	}
	for _, ids := range [][]int32{optest.RandomInts(r, b, 5), slices.Repeat([]int32{7}, b)} { // of one id no row has a negative
		id := optest.I32s("ids", ids, b)
		whole := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegatives(ns[0], ns[1], ns[2], false, .1) }, logits, noise, id).I32
		labels := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeLabels(ns[0]) }, optest.I32s("idx", whole, b)).I32
		own := []int32{9, 4, 5, 11}
		var part, partNoise []float32
		for _, i := range own {
			part, partNoise = append(part, logits.Floats()[i*m:][:m]...), append(partNoise, noise.Floats()[i*b:][:b]...)
		}
		in := []optest.Input{optest.In("rows", []int{4, m}, part), optest.In("their noise", []int{4, b}, partNoise), id, optest.I32s("own", own, 4)}
		sample := func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegativesOf(ns[0], ns[1], ns[2], ns[3], .1) }
		got := optest.Eval(t, sample, in...).I32
		gotLabels := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeLabelsOf(sample(ns), ns[3]) }, in...).I32
		for k, i := range own {
			if got[k] != whole[i] || gotLabels[k] != labels[i] {
				t.Errorf("row %d: negative %d with label %d, want %d with %d", i, got[k], gotLabels[k], whole[i], labels[i])
			}
		}
	}
	optest.RunError(t, "own row 12", func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegativesOf(ns[0], ns[1], nil, ns[2], 0) },
		logits, noise, optest.I32s("own", slices.Repeat([]int32{12}, b), b))
}

// TestLabelShare: the means over ranks of different numbers, so multiplied, have the mean of all.
func TestLabelShare(t *testing.T) {
	for _, x := range []struct {
		own, all []int32
		want     float32
	}{
		{[]int32{1, 0}, []int32{1, 0, 5, 6}, 1},
		{[]int32{1, -1}, []int32{1, -1, 5, 6}, 2. / 3},
		{[]int32{-1, -100}, []int32{-1, -100, 5, 6}, 0},
		{[]int32{3, 4}, []int32{-1, -100, 3, 4, -1, -1}, 3},
		{[]int32{-1, -1}, []int32{-1, -1, -1, -1}, 0},
	} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return LabelShare(ns[0], ns[1]) },
			optest.I32s("own", x.own, len(x.own)), optest.I32s("all", x.all, len(x.all))).F32[0]
		if got != x.want {
			t.Errorf("%v of %v: %v, want %v", x.own, x.all, got, x.want)
		}
	}
	optest.BuildError(t, "ranks", "want labels of one rank and of all", func() {
		_, ns := optest.Nodes([]optest.Input{optest.I32s("own", []int32{1, 2}, 2), optest.I32s("all", []int32{1, 2, 3}, 3)})
		LabelShare(ns[0], ns[1])
	})
}
