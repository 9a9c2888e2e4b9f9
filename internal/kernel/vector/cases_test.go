package vector

import "github.com/geoalign/geoalign/internal/kernel/kerneltest"

// vectorKernel is a kernel and its plain twin on the same arguments. The first
// slice is dst; results are compared after the call.
type vectorKernel struct {
	name               string
	slices             int
	special            bool // takes special values
	relative, absolute float64
	run                func(s [][]float32) []float32 // returns scalars
	plain              func(s [][]float32) []float32
}

var testAdamW = AdamWStep{LR: 1e-3, Beta1: 0.9, Beta2: 0.98, Eps: 1e-6, Decay: 0.05, Correct1: 0.3, Correct2: 0.1, GradScale: 0.5}

// vectorKernels lists what TestVectorAgainstPlain compares. Relative limits are a
// few roundings; absolute ones stand where terms of the size of the test values
// may cancel.
var vectorKernels = []vectorKernel{
	{"Add", 3, true, 0, 0, none(func(s [][]float32) { Add(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainAdd(s[0], s[1], s[2]) })},
	{"Sub", 3, true, 0, 0, none(func(s [][]float32) { Sub(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainSub(s[0], s[1], s[2]) })},
	{"Mul", 3, true, 0, 0, none(func(s [][]float32) { Mul(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainMul(s[0], s[1], s[2]) })},
	{"Scale", 2, true, 0, 0, none(func(s [][]float32) { Scale(s[0], 1.7, s[1]) }), none(func(s [][]float32) { plainScale(s[0], 1.7, s[1]) })},
	{"Axpy", 2, true, 1e-6, 1e-5, none(func(s [][]float32) { Axpy(s[0], -0.3, s[1]) }), none(func(s [][]float32) { plainAxpy(s[0], -0.3, s[1]) })},
	{"MulAdd", 3, false, 1e-6, 1e-5, none(func(s [][]float32) { MulAdd(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainMulAdd(s[0], s[1], s[2]) })},
	{"Axpby", 3, false, 1e-6, 1e-5, none(func(s [][]float32) { Axpby(s[0], -0.3, s[1], 1.7, s[2]) }), none(func(s [][]float32) { plainAxpby(s[0], -0.3, s[1], 1.7, s[2]) })},
	{"Acos", 2, true, 2.4e-7, 0, none(func(s [][]float32) { Acos(s[0], s[1], 1) }), none(func(s [][]float32) { plainAcos(s[0], s[1], 1) })},
	{"Acos of cosines", 2, false, 2.4e-7, 0, none(func(s [][]float32) { cosines(s[1]); Acos(s[0], s[1], AcosLimit) }), none(func(s [][]float32) { cosines(s[1]); plainAcos(s[0], s[1], AcosLimit) })},
	{"AcosGrad special", 3, true, 1e-6, 1e-45, none(func(s [][]float32) { Fill(s[2], 1.5); AcosGrad(s[0], s[1], s[2], AcosLimit) }), none(func(s [][]float32) { Fill(s[2], 1.5); plainAcosGrad(s[0], s[1], s[2], AcosLimit) })},
	{"AcosGrad", 3, false, 1e-6, 0, none(func(s [][]float32) { cosines(s[1]); AcosGrad(s[0], s[1], s[2], AcosLimit) }), none(func(s [][]float32) { cosines(s[1]); plainAcosGrad(s[0], s[1], s[2], AcosLimit) })},
	{"MinPlus", 2, true, 0, 0, none(func(s [][]float32) { MinPlus(s[0], s[1], 1.5) }), none(func(s [][]float32) { plainMinPlus(s[0], s[1], 1.5) })},
	{"ArgMax", 1, true, 0, 0, one(func(s [][]float32) float32 { return at32(s[0], ArgMax) }), one(func(s [][]float32) float32 { return at32(s[0], plainArgMax) })},
	{"PathCos", 2, true, 0, 2e-7, none(func(s [][]float32) { PathCos(s[0], pathEntries, owners(s[1]), s[1], 6) }), none(func(s [][]float32) { plainPathCos(s[0], pathEntries, owners(s[1]), s[1], 6) })},
	{"PathCosSlope", 3, false, 4e-7, 1e-6, none(func(s [][]float32) { PathCosSlope(s[0], pathEntries, owners(s[1]), s[1], s[2], 6) }), none(func(s [][]float32) { plainPathCosSlope(s[0], pathEntries, owners(s[1]), s[1], s[2], 6) })},
	{"Fill", 1, true, 0, 0, none(func(s [][]float32) { Fill(s[0], 2.5) }), none(func(s [][]float32) { plainFill(s[0], 2.5) })},
	{"EMA", 2, true, 1e-6, 1e-5, none(func(s [][]float32) { EMA(s[0], s[1], 0.005) }), none(func(s [][]float32) { plainEMA(s[0], s[1], 0.005) })},
	{"Exp", 2, true, 2.5e-7, 1.5e-45, none(func(s [][]float32) { Exp(s[0], s[1]) }), none(func(s [][]float32) { plainExp(s[0], s[1]) })},
	{"ExpSum", 2, false, 1e-6, 0, one(func(s [][]float32) float32 { return ExpSum(s[0], s[1], 1.5) }), one(func(s [][]float32) float32 { return plainExpSum(s[0], s[1], 1.5) })},
	{"ExpSum special", 2, true, 1e-6, 1.5e-45, one(func(s [][]float32) float32 { return ExpSum(s[0], s[1], -1) }), one(func(s [][]float32) float32 { return plainExpSum(s[0], s[1], -1) })},
	{"SumExp", 1, true, 1e-6, 0, one(func(s [][]float32) float32 { return SumExp(s[0], 2) }), one(func(s [][]float32) float32 { return plainSumExp(s[0], 2) })},
	{"SumExp infinite shift", 1, true, 1e-6, 0, one(func(s [][]float32) float32 { return SumExp(s[0], -kerneltest.Inf) }), one(func(s [][]float32) float32 { return plainSumExp(s[0], -kerneltest.Inf) })},
	{"SumExpMax", 1, true, 1e-6, 0, two(func(s [][]float32) (a, b float32) { return SumExpMax(s[0], 2) }), two(func(s [][]float32) (a, b float32) { return plainSumExp(s[0], 2), plainTop(s[0], 2) })},
	{"SumExpDotMax", 2, false, 1e-6, 1e-2, three(func(s [][]float32) (a, b, c float32) { return SumExpDotMax(s[0], s[1], 2) }), three(func(s [][]float32) (a, b, c float32) {
		return plainSumExp(s[0], 2), plainSumExpDot(s[0], s[1], 2), plainTop(s[0], 2)
	})},
	{"SoftmaxDiff", 2, true, 1e-6, 1.5e-45, none(func(s [][]float32) { SoftmaxDiff(s[0], s[1], 2, 0.5) }), none(func(s [][]float32) { plainSoftmaxDiff(s[0], s[1], 2, 0.5) })},
	{"SoftmaxDiff2", 3, false, 1e-6, 1e-3, none(func(s [][]float32) { SoftmaxDiff2(s[0], s[1], s[2], 2, 0.5, 3, 0.7) }), none(func(s [][]float32) { plainSoftmaxDiff2(s[0], s[1], s[2], 2, 0.5, 3, 0.7) })},
	{"GELU", 2, true, 1.2e-7, 1.2e-7, none(func(s [][]float32) { GELU(s[0], s[1]) }), none(func(s [][]float32) { plainGELU(s[0], s[1]) })},
	{"GELUGrad", 3, false, 1e-6, 1e-6, none(func(s [][]float32) { GELUGrad(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainGELUGrad(s[0], s[1], s[2]) })},
	{"GELUGrad special", 2, true, 2e-7, 2e-7, none(func(s [][]float32) { Fill(s[0], 1); GELUGrad(s[0], s[1], s[0]) }), none(func(s [][]float32) { plainFill(s[0], 1); plainGELUGrad(s[0], s[1], s[0]) })},
	{"GELUTanh", 2, true, 2e-7, 4e-7, none(func(s [][]float32) { ByGELUTanh.Apply(s[0], s[1]) }), none(func(s [][]float32) { plainSigmoidUnit(s[0], s[1], sigmoids[ByGELUTanh].a, sigmoids[ByGELUTanh].b) })},
	{"QuickGELU", 2, true, 2e-7, 4e-7, none(func(s [][]float32) { ByQuickGELU.Apply(s[0], s[1]) }), none(func(s [][]float32) { plainSigmoidUnit(s[0], s[1], 1.702, 0) })},
	{"SiLU", 2, true, 2e-7, 4e-7, none(func(s [][]float32) { BySiLU.Apply(s[0], s[1]) }), none(func(s [][]float32) { plainSigmoidUnit(s[0], s[1], 1, 0) })},
	{"GELUTanhGrad", 2, true, 2e-6, 2e-6, none(func(s [][]float32) { Fill(s[0], 1); ByGELUTanh.Grad(s[0], s[1], s[0]) }), none(func(s [][]float32) {
		plainFill(s[0], 1)
		plainSigmoidUnitGrad(s[0], s[1], s[0], sigmoids[ByGELUTanh].a, sigmoids[ByGELUTanh].b)
	})},
	{"QuickGELUGrad", 2, true, 1e-6, 1e-6, none(func(s [][]float32) { Fill(s[0], 1); ByQuickGELU.Grad(s[0], s[1], s[0]) }), none(func(s [][]float32) { plainFill(s[0], 1); plainSigmoidUnitGrad(s[0], s[1], s[0], 1.702, 0) })},
	{"SiLUGrad", 3, false, 1e-6, 4e-6, none(func(s [][]float32) { BySiLU.Grad(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainSigmoidUnitGrad(s[0], s[1], s[2], 1, 0) })},
	{"GRU", 5, true, 2e-7, 4e-7, none(func(s [][]float32) { cosines(s[0]); cosines(s[4]); GRU(s[0], s[1], s[2], s[3], s[4]) }), none(func(s [][]float32) { cosines(s[0]); cosines(s[4]); plainGRU(s[0], s[1], s[2], s[3], s[4]) })},
	{"GRUGrad", 7, false, 1e-5, 1e-2, none(func(s [][]float32) { GRUGrad(s[0], s[1], s[2], s[3], s[4], s[5], s[6]) }), none(func(s [][]float32) { plainGRUGrad(s[0], s[1], s[2], s[3], s[4], s[5], s[6]) })},
	{"Max", 1, false, 0, 0, one(func(s [][]float32) float32 { return Max(s[0]) }), one(func(s [][]float32) float32 { return plainMax(s[0]) })},
	{"Max special", 1, true, 0, 0, one(func(s [][]float32) float32 { return Max(s[0]) }), one(func(s [][]float32) float32 { return plainMax(s[0]) })},
	{"Dot", 2, true, 1.2e-7, 1e-12, one(func(s [][]float32) float32 { return Dot(s[0], s[1]) }), one(func(s [][]float32) float32 { return plainDot(s[0], s[1]) })},
	{"Sum", 1, false, 1.2e-7, 1e-12, one(func(s [][]float32) float32 { return Sum(s[0]) }), one(func(s [][]float32) float32 { return plainSum(s[0]) })},
	{"SumSq", 1, true, 1.2e-7, 0, one(func(s [][]float32) float32 { return float32(SumSq(s[0])) }), one(func(s [][]float32) float32 { return float32(plainSumSq(s[0])) })},
	{"SoftmaxGradRow", 3, false, 1e-5, 1e-3, none(func(s [][]float32) { SoftmaxGradRow(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainMulSub(s[0], s[1], s[2], plainDot(s[1], s[2])) })},
	{"LayerNorm", 4, false, 1e-5, 1e-5, two(func(s [][]float32) (a, b float32) { return LayerNorm(s[0], s[1], s[2], s[3], 1e-3) }), two(func(s [][]float32) (a, b float32) { return plainLayerNorm(s[0], s[1], s[2], s[3], 1e-3) })},
	{"LayerNormGrad", 6, false, 1e-5, 1e-4, none(func(s [][]float32) { LayerNormGrad(s[0], s[1], s[2], s[3], s[4], s[5], 0.3, 0.4) }), none(func(s [][]float32) { plainLayerNormGrad(s[0], s[1], s[2], s[3], s[4], s[5], 0.3, 0.4) })},
	{"LayerNormGradAdd", 7, false, 1e-5, 1e-4, none(func(s [][]float32) { LayerNormGradAdd(s[0], s[1], s[2], s[3], s[4], s[5], s[6], 0.3, 0.4) }), none(func(s [][]float32) {
		plainLayerNormGradAdd(s[0], s[1], s[2], s[3], s[4], s[5], s[6], 0.3, 0.4)
	})},
	{"Clip", 2, true, 0, 0, none(func(s [][]float32) { Clip(s[0], s[1], 0.5) }), none(func(s [][]float32) { plainClip(s[0], s[1], 0.5) })},
	{"ReLU", 2, true, 0, 0, none(func(s [][]float32) { ReLU(s[0], s[1]) }), none(func(s [][]float32) { plainReLU(s[0], s[1]) })},
	{"ReLUGrad", 3, true, 0, 0, none(func(s [][]float32) { ReLUGrad(s[0], s[1], s[2]) }), none(func(s [][]float32) { plainReLUGrad(s[0], s[1], s[2]) })},
	{"Columns.Apply", 5, false, 1e-6, 1e-5, none(func(s [][]float32) { columnsOf(s[2:], false).Apply(s[0], s[1], nil) }), none(func(s [][]float32) { columnsOf(s[2:], false).plainApply(s[0], s[1], nil) })},
	{"Columns.Apply of a sum", 6, false, 1e-6, 1e-5, none(func(s [][]float32) { columnsOf(s[2:], true).Apply(s[0], s[1], s[5]) }), none(func(s [][]float32) { columnsOf(s[2:], true).plainApply(s[0], s[1], s[5]) })},
	{"Columns.Grad", 7, false, 1e-6, 1e-4, none(func(s [][]float32) { columnsOf(s[2:], false).Grad(s[0], s[1], s[5], s[6], s[4]) }), none(func(s [][]float32) { columnsOf(s[2:], false).plainGrad(s[0], s[1], s[5], s[6], s[4]) })},
	{"Columns.Grad with ReLU", 7, false, 1e-6, 1e-4, none(func(s [][]float32) { columnsOf(s[2:], true).Grad(s[0], s[1], s[5], s[6], s[4]) }), none(func(s [][]float32) { columnsOf(s[2:], true).plainGrad(s[0], s[1], s[5], s[6], s[4]) })},
	{"AdamW", 4, true, 2e-6, 1e-6, none(func(s [][]float32) { square(s[2]); AdamW(s[0], s[1], s[2], s[3], testAdamW) }), none(func(s [][]float32) { square(s[2]); plainAdamW(s[0], s[1], s[2], s[3], testAdamW) })},
	{"AdamWEMA", 5, true, 2e-6, 1e-6, none(func(s [][]float32) { square(s[2]); AdamWEMA(s[0], s[1], s[2], s[3], s[4], testAdamW, 0.3) }), none(func(s [][]float32) {
		square(s[2])
		plainAdamW(s[0], s[1], s[2], s[3], testAdamW)
		plainEMA(s[4], s[0], 0.3)
	})},
}

// columnsOf are columns with the parameters of three slices.
func columnsOf(s [][]float32, relu bool) *Columns {
	return &Columns{Mean: s[0], Scale: s[1], Shift: s[2], ReLU: relu}
}

// pathEntries are distances to 256 centres, the last of which no path reaches.
var pathEntries = func() []float32 {
	entry := make([]float32, 256)
	for i := range entry {
		entry[i] = float32(i) / 64
	}
	entry[255] = kerneltest.Inf
	return entry
}()

// pathOwners are owners of these for slices of any length that tests and benchmarks take.
var pathOwners = randomOwners(1<<17, 256)

// owners returns as many owners as x has values.
func owners(x []float32) []int32 { return pathOwners[:len(x)] }

// at32 returns the index that f finds, 0 for no values.
func at32(x []float32, f func(x []float32) int) float32 {
	if len(x) == 0 {
		return 0
	}
	return float32(f(x))
}

// square makes second moments of test values.
func square(x []float32) {
	for i := range x {
		x[i] *= x[i]
	}
}

// cosines makes values of [-1, 1], some of them the ends, of test values.
func cosines(x []float32) {
	for i := range x {
		x[i] = max(-1, min(x[i]/4, 1))
	}
}

func none(f func(s [][]float32)) func(s [][]float32) []float32 {
	return func(s [][]float32) []float32 { f(s); return nil }
}

func one(f func(s [][]float32) float32) func(s [][]float32) []float32 {
	return func(s [][]float32) []float32 { return []float32{f(s)} }
}

func two(f func(s [][]float32) (a, b float32)) func(s [][]float32) []float32 {
	return func(s [][]float32) []float32 { a, b := f(s); return []float32{a, b} }
}

func three(f func(s [][]float32) (a, b, c float32)) func(s [][]float32) []float32 {
	return func(s [][]float32) []float32 { a, b, c := f(s); return []float32{a, b, c} }
}
