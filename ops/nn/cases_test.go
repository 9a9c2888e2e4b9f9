package nn

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// nnCases are the ops of this package with operands that are large enough for several threads.
func nnCases() []optest.Case {
	r := rand.New(rand.NewPCG(11, 12))
	const rows, d = 120, 321
	x, y := optest.F32s(r, "x", rows, d), optest.F32s(r, "y", rows, d)
	vector, other := optest.F32s(r, "vector", d), optest.F32s(r, "other", d)
	square := optest.F32s(r, "square", d)
	for i, v := range square.Floats() {
		square.Floats()[i] = v * v
	}
	// Enough rows for several parts of sums.
	tall, rest := optest.F32s(r, "tall", 700, 21), optest.F32s(r, "rest", 700, 21)
	narrow, narrower := optest.F32s(r, "narrow", 21), optest.F32s(r, "narrower", 21)
	key := optest.I32s("key", []int32{3, 4}, 2)
	ids := optest.I32s("ids", optest.RandomInts(r, 90, 60), 90)
	every := optest.I32s("every", make([]int32, rows), rows)
	for i := range rows {
		every.Data.([]int32)[i] = int32(i)
	}
	return append(optest.ElementCases(elementOps()), []optest.Case{
		{Name: "linear", Inputs: []optest.Input{x, optest.F32s(r, "w", 77, d), optest.F32s(r, "b", 77)}, WRT: []int{0, 1, 2}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) }},
		{Name: "linear part", Inputs: []optest.Input{x, optest.F32s(r, "w", 77, d), optest.F32s(r, "b", 77)}, WRT: []int{0, 1, 2}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LinearPart(ns[0], ns[1], ns[2], 20, 30) }},
		{Name: "linear gelu", Inputs: []optest.Input{x, optest.F32s(r, "w", 77, d), optest.F32s(r, "b", 77)}, WRT: []int{0, 1, 2}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LinearGELU(ns[0], ns[1], ns[2]) }},
		{Name: "linear gelu_tanh", Inputs: []optest.Input{x, optest.F32s(r, "w", 77, d), optest.F32s(r, "b", 77)}, WRT: []int{0, 1, 2}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return LinearActivated(ns[0], ns[1], ns[2], "gelu_tanh")
			}},
		{Name: "swiglu", Inputs: []optest.Input{optest.F32s(r, "x", rows, 642)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SwiGLU(ns[0]) }},
		{Name: "scale columns", Inputs: []optest.Input{x, vector}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleColumns(ns[0], ns[1]) }},
		{Name: "scale shift", Inputs: []optest.Input{x, optest.F32s(r, "scale", 2*d), optest.F32s(r, "shift", 2*d)}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleShift(ns[0], ns[1], ns[2], 100) }},
		{Name: "repeat rows", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return RepeatRows(ns[0], 3) }},
		{Name: "mean tokens", Inputs: []optest.Input{x, optest.I32s("lengths", []int32{30, 0, 7, 1}, 4)}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return MeanTokens(ns[0], ns[1], 30, 0) }},
		{Name: "mean patches", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return MeanTokens(ns[0], nil, 30, 2) }},
		{Name: "layer norm", Inputs: []optest.Input{x, vector, other}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-5) }},
		{Name: "batch norm", Inputs: []optest.Input{x, vector, other}, WRT: []int{0, 1, 2}, Build: batchNormOf(false, 0, 0, 1e-5)},
		{Name: "batch norm of rows that count", Inputs: []optest.Input{x, vector, other, optest.I32s("lengths", []int32{30, 0, 7, 1}, 4)}, WRT: []int{0, 1, 2},
			Build: batchNormOf(false, 30, 0, 1e-5)},
		{Name: "batch norm of ranks", Inputs: []optest.Input{x, vector, other}, WRT: []int{0, 1, 2}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			y, _, _ := BatchNorm(BatchNormArgs{X: ns[0], Gamma: ns[1], Beta: ns[2], Eps: 1e-5, Group: pair{}})
			return y
		}},
		{Name: "dropout share", Inputs: []optest.Input{key, optest.I32s("share", []int32{1, 2}, 2)}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return DropoutShare(ns[0], ns[1], nil, 1, 300, 3, 70, 0.9)
		}},
		{Name: "dropout share of places", Inputs: []optest.Input{key, optest.I32s("share", []int32{1, 2}, 2), optest.I32s("places", optest.RandomInts(r, 150, 99), 150)}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return DropoutShare(ns[0], ns[1], ns[2], 1, 300, 1, 70, 0.9)
		}},
		{Name: "batch norm by given statistics", Inputs: []optest.Input{x, vector, other, vector, square, optest.I32s("lengths", []int32{30, 0, 7, 1}, 4)}, WRT: []int{0, 1, 2},
			Build: batchNormOf(true, 30, 0, 1e-5)},
		{Name: "batch norm, residual, relu", Inputs: []optest.Input{tall, narrow, narrower, rest}, WRT: []int{0, 1, 2, 3},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return batchNormThen(true, ns[3])(ns) }},
		{Name: "batch norm, relu", Inputs: []optest.Input{tall, narrow, narrower}, WRT: []int{0, 1, 2}, Build: batchNormThen(true, nil)},
		{Name: "dropout", Inputs: []optest.Input{x, key}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Dropout(ns[0], DropoutBits(ns[1], 1, rows, d, 0.9), 0.9)
			}},
		{Name: "gelu dropout", Inputs: []optest.Input{x, key}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return GELUDropout(ns[0], DropoutBits(ns[1], 1, rows, d, 0.9), 0.9)
			}},
		{Name: "gelu dropout of whole words", Inputs: []optest.Input{optest.F32s(r, "x", 300, 64), key}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return GELUDropout(ns[0], DropoutBits(ns[1], 1, 300, 64, 0.9), 0.9)
			}},
		{Name: "dropout of whole words", Inputs: []optest.Input{optest.F32s(r, "x", 300, 64), key}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Dropout(ns[0], DropoutBits(ns[1], 1, 300, 64, 0.9), 0.9)
			}},
		{Name: "add norm", Inputs: []optest.Input{x, y, vector, other, key}, WRT: []int{0, 1, 2, 3},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				sum, norm := AddNorm(AddNormArgs{H: ns[0], X: ns[1], Bits: DropoutBits(ns[4], 1, rows, d, 0.9), Gamma: ns[2], Beta: ns[3], Keep: 0.9, Eps: 1e-5})
				return arith.Add(sum, GELU(norm))
			}},
		{Name: "add norm without dropout", Inputs: []optest.Input{x, y, vector, other}, WRT: []int{0, 1, 2, 3},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				_, norm := AddNorm(AddNormArgs{H: ns[0], X: ns[1], Gamma: ns[2], Beta: ns[3], Keep: 1, Eps: 1e-5})
				return norm
			}},
		{Name: "max tokens", Inputs: []optest.Input{x, optest.I32s("lengths", optest.RandomInts(r, rows/30, 31), rows/30)}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return MaxTokens(ns[0], ns[1], 30) }},
		{Name: "sort pool", Inputs: []optest.Input{x, optest.F32s(r, "scores", rows, 1), optest.I32s("lengths", optest.RandomInts(r, rows/30, 31), rows/30)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SortPool(ns[0], ns[1], ns[2], 30, .1) }},
		{Name: "soft pool", Inputs: []optest.Input{x, y, optest.I32s("lengths", optest.RandomInts(r, rows/30, 31), rows/30)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SoftPool(ns[0], ns[1], ns[2], 30) }},
		{Name: "log places", Inputs: []optest.Input{x}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LogPlaces(ns[0], 3, 4) }},
		{Name: "sinusoids", Inputs: []optest.Input{x}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Sinusoids(ns[0], 3, 4) }},
		{Name: "embed", Inputs: []optest.Input{x, ids}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }},
		{Name: "embed of every row besides another use", Inputs: []optest.Input{x, y, every}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				sum := arith.Add(ns[0], ns[1])
				return arith.Add(Embed(sum, ns[2]), GELU(sum))
			}},
		{Name: "embed padded", Inputs: []optest.Input{x, ids}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return EmbedPadded(ns[0], ns[1], 1) }},
		{Name: "gather rows", Inputs: []optest.Input{x, ids}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return GatherRows(ns[0], ns[1], 2) }},
		{Name: "add positions", Inputs: []optest.Input{x, y}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 30) }},
		{Name: "l2 normalize", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 1e-12) }},
		{Name: "patchify", Inputs: []optest.Input{optest.F32s(r, "images", 4, 3, 64, 64)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Patchify(ns[0], 16) }},
		{Name: "prepend token", Inputs: []optest.Input{x, vector}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return PrependToken(ns[0], ns[1], 30) }},
	}...)
}
