package contrast

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestIdentity: calls that differ in one argument make different nodes, and equal calls the same
// one: Gorgonia merges nodes by hash.
func TestIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	g, ns := optest.Nodes([]optest.Input{
		optest.F32s(r, "square", 4, 4), optest.F32s(r, "noise", 4, 4),
		optest.I32s("four", make([]int32, 4), 4), optest.I32s("other four", make([]int32, 4), 4),
		optest.F32s(r, "alpha"), optest.I32s("cols", []int32{4}), optest.I32s("two", make([]int32, 2), 2),
	})
	square, noise, four, other, alpha, cols, two := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6]
	ce := func(a CrossEntropyArgs) func() *gorgonia.Node {
		a.Logits = square
		return func() *gorgonia.Node { return CrossEntropy(a) }
	}
	optest.CheckIdentity(t, g, []func() *gorgonia.Node{
		ce(CrossEntropyArgs{Labels: four}),
		ce(CrossEntropyArgs{Labels: other}),
		ce(CrossEntropyArgs{Labels: four, Cols: cols}),
		ce(CrossEntropyArgs{Labels: four, Teacher: noise, Alpha: alpha}),
		ce(CrossEntropyArgs{RowIDs: four, ColIDs: other}),
		ce(CrossEntropyArgs{RowIDs: other, ColIDs: four}),
		ce(CrossEntropyArgs{RowIDs: other, ColIDs: four, Teacher: noise, Alpha: alpha}),
		func() *gorgonia.Node { return Accuracy(square, four) },
		func() *gorgonia.Node { return SampleNegatives(square, noise, nil, false, 0) },
		func() *gorgonia.Node { return SampleNegatives(square, noise, nil, true, 0) },
		func() *gorgonia.Node { return SampleNegatives(square, noise, nil, true, 1e-4) },
		func() *gorgonia.Node { return SampleNegatives(square, noise, four, true, 0) },
		func() *gorgonia.Node { return SampleNegativesOf(square, noise, nil, four, 0) },
		func() *gorgonia.Node { return SampleNegativesOf(square, noise, nil, other, 0) },
		func() *gorgonia.Node { return SampleNegativesOf(square, noise, four, other, 0) },
		func() *gorgonia.Node { return SampleNegativesOf(square, noise, other, four, 0) },
		func() *gorgonia.Node { return NegativeLabelsOf(four, other) },
		func() *gorgonia.Node { return NegativeLabelsOf(other, four) },
		func() *gorgonia.Node { return LabelShare(two, four) },
		func() *gorgonia.Node { return LabelShare(four, other) },
		func() *gorgonia.Node { return NegativeLabels(four) },
		func() *gorgonia.Node { return SamplePairs(square, noise, nil) },
		func() *gorgonia.Node { return SamplePairs(square, noise, four) },
		func() *gorgonia.Node { return AssignedPictures(four, two, 0) },
		func() *gorgonia.Node { return AssignedPictures(four, two, 1) },
		func() *gorgonia.Node { return AssignmentLabels(four, two) },
	})
}

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 6, 36), optest.I32s("a", make([]int32, 6), 6), optest.F32s(r, "two", 6, 2), optest.In("s", nil, []float32{0})})
	x, a, two, s := ns[0], ns[1], ns[2], ns[3]
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"pool": {
			func() *gorgonia.Node { return PoolPatches(x, 6, 2, 1) }, func() *gorgonia.Node { return PoolPatches(x, 6, 2, 2) },
			func() *gorgonia.Node { return PoolPatches(x, 6, 1, 1) }, func() *gorgonia.Node { return PoolPatches(x, 3, 1, 1) },
		},
		"pool dx": {optest.Variant(patchPool{6, 2, 1}.backward(tensor.Shape{36, 36}), x), optest.Variant(patchPool{6, 2, 1}.backward(tensor.Shape{36, 36, 1}), x)},
		"local": {
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, First: 1}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, Lengths: a}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, IDs: a}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, Lengths: a, IDs: a}) },
		},
		"hardest": {
			func() *gorgonia.Node { n, _ := HardestNegatives(x, nil); return n }, func() *gorgonia.Node { n, _ := HardestNegatives(x, a); return n },
			func() *gorgonia.Node { _, n := HardestNegatives(x, nil); return n },
		},
		"relabel": {
			func() *gorgonia.Node { return Relabel(a, a, two, .8, .5).Index }, func() *gorgonia.Node { return Relabel(a, a, two, .8, .4).Index },
			func() *gorgonia.Node { return Relabel(a, a, two, .9, .5).Index }, func() *gorgonia.Node { return Relabel(a, a, two, .8, .5).Labels },
			func() *gorgonia.Node { return Relabel(a, a, two, .8, .5).Positive },
		},
		"cross entropy": {
			optest.Variant((&crossEntropy{labels: 1, teacher: -1, alpha: -1, rowIDs: -1, colIDs: -1, cols: -1, extra: -1, uniform: -1, operands: 2}).forward(), x, a),
			func() *gorgonia.Node { return CrossEntropyRows(CrossEntropyArgs{Logits: x, Labels: a, Extra: a}) },
			func() *gorgonia.Node { return CrossEntropyRows(CrossEntropyArgs{Logits: x, Labels: a, Uniform: s}) },
		},
	})
}
