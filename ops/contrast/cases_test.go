package contrast

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// lossCases are the ops of this package with operands that are large enough for several threads.
func lossCases() []optest.Case {
	r := rand.New(rand.NewPCG(12, 1))
	logits, teacher, alpha := optest.F32s(r, "logits", 40, 1500), optest.F32s(r, "teacher", 40, 1500), optest.In("alpha", nil, []float32{.4})
	labels, columns := optest.I32s("labels", optest.RandomInts(r, 40, 1400), 40), optest.I32s("columns", optest.RandomInts(r, 1500, 60), 1500)
	labels.Data.([]int32)[3] = -100
	cols := optest.I32s("cols", []int32{1400})
	square, noise, ids := optest.F32s(r, "square", 50, 60), optest.F32s(r, "noise", 50, 50), optest.I32s("ids", optest.RandomInts(r, 50, 30), 50)
	return []optest.Case{
		{Name: "cross entropy of labels", Inputs: []optest.Input{logits, teacher, alpha, labels, cols}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Teacher: ns[1], Alpha: ns[2], Labels: ns[3], Cols: ns[4]})
			}},
		{Name: "cross entropy of ids", Inputs: []optest.Input{logits, labels, columns}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], RowIDs: ns[1], ColIDs: ns[2]})
			}},
		{Name: "worst", Inputs: []optest.Input{optest.F32s(r, "a", 150, 150), optest.F32s(r, "b", 150, 150)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Worst(ns[0], ns[1]) }},
		{Name: "accuracy", Inputs: []optest.Input{logits, labels}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Accuracy(ns[0], ns[1]) }},
		{Name: "negatives", Inputs: []optest.Input{square, noise, ids},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				idx := SampleNegatives(ns[0], ns[1], ns[2], true, 1e-4)
				return layout.ConcatInts(idx, NegativeLabels(idx), layout.GatherInts(idx, idx))
			}},
		{Name: "negatives of some rows", Inputs: []optest.Input{optest.F32s(r, "rows", 30, 60), optest.F32s(r, "their noise", 30, 50), ids, optest.I32s("own", optest.RandomInts(r, 30, 50), 30)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				idx := SampleNegativesOf(ns[0], ns[1], ns[2], ns[3], 1e-4)
				return layout.ConcatInts(idx, NegativeLabelsOf(idx, ns[3]))
			}},
		{Name: "label share", Inputs: []optest.Input{optest.I32s("own labels", []int32{1, -1}, 2), optest.I32s("all labels", []int32{1, -1, 3, 0}, 4)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LabelShare(ns[0], ns[1]) }},
		{Name: "sampled pairs", Inputs: []optest.Input{optest.F32s(r, "logits", 50, 50), noise, ids},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				two, answers := SamplePairs(ns[0], ns[1], ns[2]), ns[2]
				return layout.ConcatInts(two, AssignedPictures(two, answers, 0), AssignedPictures(two, answers, 1), AssignmentLabels(two, answers))
			}},
		{Name: "negative labels", Inputs: []optest.Input{ids}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeLabels(ns[0]) }},
		{Name: "cross entropy with labels", Inputs: []optest.Input{optest.F32s(r, "x", 5, 9000), optest.I32s("labels", []int32{7, -1, 8999, 4096, 0}, 5)}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1]})
			}},
		{Name: "cross entropy with ids and a teacher", WRT: []int{0},
			Inputs: []optest.Input{optest.F32s(r, "x", 5, 9000), optest.F32s(r, "t", 5, 9000), optest.In("alpha", nil, []float32{0.4}),
				optest.I32s("rows", []int32{7, 3, 7, 11, 400}, 5), optest.I32s("cols", optest.RandomInts(r, 9000, 300), 9000)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Teacher: ns[1], Alpha: ns[2], RowIDs: ns[3], ColIDs: ns[4]})
			}},
	}
}
