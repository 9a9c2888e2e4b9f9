package nn

import (
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, v, key, images, bits, part := h.M, h.V, h.Key, h.Images, h.Bits, h.Narrow
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"layer norm": {
			func() *gorgonia.Node { return LayerNorm(m, v, v, 1e-5) },
			func() *gorgonia.Node { return LayerNorm(m, v, v, 1e-6) },
			func() *gorgonia.Node { return LayerNorm(m, v, v, 1.0000001e-6) },
		},
		"batch norm": {
			func() *gorgonia.Node { return batchNormOf(false, 0, 0, 1e-5)(gorgonia.Nodes{m, v, v}) },
			func() *gorgonia.Node { return batchNormOf(false, 0, 0, 1.0000001e-5)(gorgonia.Nodes{m, v, v}) },
			func() *gorgonia.Node { return batchNormOf(false, 6, 0, 1e-5)(gorgonia.Nodes{m, v, v, key}) },
			func() *gorgonia.Node { return batchNormOf(true, 0, 0, 1e-5)(gorgonia.Nodes{m, v, v, v, v}) },
			func() *gorgonia.Node {
				y, _, _ := BatchNorm(BatchNormArgs{X: m, Gamma: v, Beta: v, Eps: 1e-5, Group: pair{}})
				return y
			},
			func() *gorgonia.Node { return batchNormThen(true, nil)(gorgonia.Nodes{m, v, v}) },
			func() *gorgonia.Node { return batchNormThen(false, m)(gorgonia.Nodes{m, v, v}) },
			func() *gorgonia.Node { return batchNormThen(true, m)(gorgonia.Nodes{m, v, v}) },
		},
		"batch norm dx": {
			optest.Variant((&batchNorm{}).backward(5), m, m, v, v, m),
			optest.Variant((&batchNorm{relu: true}).backward(5), m, m, v, v, m),
			optest.Variant((&batchNorm{given: true}).backward(5), m, m, v, v, m),
			optest.Variant((&batchNorm{group: pair{}}).backward(5), m, m, v, v, m),
			optest.Variant((&batchNorm{padded: true, l: 1}).backward(6), m, m, v, v, m, key),
			optest.Variant((&batchNorm{padded: true, l: 2}).backward(6), m, m, v, v, m, key),
		},
		"scale shift": {
			func() *gorgonia.Node { return ScaleShift(part, v, v, 0) },
			func() *gorgonia.Node { return ScaleShift(part, v, v, 1) },
		},
		"scale shift dx": {optest.Variant(scaleShiftGrad(0), part, v), optest.Variant(scaleShiftGrad(1), part, v)},
		"soft pool": {
			func() *gorgonia.Node { return SoftPool(m, m, key, 6) },
			func() *gorgonia.Node { return SoftPool(m, m, bits, 1) },
		},
		"soft pool dx": {optest.Variant(softPoolGrad(1), m, m, m, key, m), optest.Variant(softPoolGrad(2), m, m, m, key, m)},
		"dropout bits": {
			func() *gorgonia.Node { return DropoutBits(key, 1, 12, 12, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 2, 12, 12, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 1, 13, 12, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 1, 12, 13, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 1, 12, 12, 0.6) },
		},
		"dropout share": {
			func() *gorgonia.Node { return DropoutShare(key, key, nil, 1, 12, 1, 12, 0.5) },
			func() *gorgonia.Node { return DropoutShare(key, key, bits, 1, 12, 1, 12, 0.5) },
			func() *gorgonia.Node { return DropoutShare(key, key, nil, 2, 12, 1, 12, 0.5) },
			func() *gorgonia.Node { return DropoutShare(key, key, nil, 1, 18, 1, 12, 0.5) },
			func() *gorgonia.Node { return DropoutShare(key, key, nil, 1, 12, 2, 12, 0.5) },
			func() *gorgonia.Node { return DropoutShare(key, key, nil, 1, 12, 1, 13, 0.5) },
			func() *gorgonia.Node { return DropoutShare(key, key, nil, 1, 12, 1, 12, 0.6) },
		},
		"dropout": {
			func() *gorgonia.Node { return Dropout(m, bits, 0.5) },
			func() *gorgonia.Node { return Dropout(m, bits, 0.6) },
		},
		"add norm": {
			func() *gorgonia.Node {
				n, _ := AddNorm(AddNormArgs{H: m, X: m, Gamma: v, Beta: v, Keep: 1, Eps: 1e-5})
				return n
			},
			func() *gorgonia.Node {
				n, _ := AddNorm(AddNormArgs{H: m, X: m, Gamma: v, Beta: v, Keep: 1, Eps: 1e-6})
				return n
			},
			func() *gorgonia.Node {
				n, _ := AddNorm(AddNormArgs{H: m, X: m, Bits: bits, Gamma: v, Beta: v, Keep: 0.5, Eps: 1e-5})
				return n
			},
			func() *gorgonia.Node {
				n, _ := AddNorm(AddNormArgs{H: m, X: m, Bits: bits, Gamma: v, Beta: v, Keep: 0.6, Eps: 1e-5})
				return n
			},
			func() *gorgonia.Node {
				_, n := AddNorm(AddNormArgs{H: m, X: m, Gamma: v, Beta: v, Keep: 1, Eps: 1e-5})
				return n
			},
		},
		"add norm dx": {optest.Variant(addNormGrad(false), m, v, m), optest.Variant(addNormGrad(true), m, v, m, m)},
		"gather rows": {
			func() *gorgonia.Node { return Embed(m, key) },
			func() *gorgonia.Node { return EmbedPadded(m, key, 0) },
			func() *gorgonia.Node { return EmbedPadded(m, key, 1) },
			func() *gorgonia.Node { return GatherRows(m, key, 1) },
			func() *gorgonia.Node { return GatherRows(m, key, 2) },
		},
		"gather rows dx": {
			optest.Variant((&gather{kind: "gather rows", block: 1, still: -1}).backward(12), bits, m),
			optest.Variant((&gather{kind: "gather rows", block: 1, still: -1}).backward(24), bits, m),
			optest.Variant((&gather{kind: "embed", block: 1, still: -1}).backward(12), bits, m),
			optest.Variant((&gather{kind: "embed", block: 1}).backward(12), bits, m),
		},
		"add positions": {
			func() *gorgonia.Node { return AddPositions(m, m, 3) },
			func() *gorgonia.Node { return AddPositions(m, m, 4) },
		},
		"add positions dtable": {optest.Variant(positionsGrad(3, 6), m), optest.Variant(positionsGrad(3, 7), m), optest.Variant(positionsGrad(4, 6), m)},
		"l2 normalize": {
			func() *gorgonia.Node { return L2Normalize(m, 1e-12) },
			func() *gorgonia.Node { return L2Normalize(m, 1e-11) },
		},
		"l2 normalize dx": {optest.Variant(l2NormalizeGrad(1e-12), m, m), optest.Variant(l2NormalizeGrad(1e-11), m, m)},
		"patchify": {
			func() *gorgonia.Node { return Patchify(images, 2) },
			func() *gorgonia.Node { return Patchify(images, 3) },
		},
		"patchify dx": {
			optest.Variant(unpatchify(tensor.Shape{1, 1, 12, 12}, 2), m),
			optest.Variant(unpatchify(tensor.Shape{1, 1, 12, 12}, 3), m),
			optest.Variant(unpatchify(tensor.Shape{1, 1, 6, 24}, 2), m),
		},
		"prepend token": {
			func() *gorgonia.Node { return PrependToken(m, v, 2) },
			func() *gorgonia.Node { return PrependToken(m, v, 3) },
		},
		"prepend token dx":     {optest.Variant(dropToken(3, tensor.Shape{1, 12}), m), optest.Variant(dropToken(5, tensor.Shape{1, 12}), m), optest.Variant(dropToken(3, tensor.Shape{3, 12}), m)},
		"prepend token dtoken": {optest.Variant(sumToken(3, tensor.Shape{12}), m), optest.Variant(sumToken(3, tensor.Shape{1, 12}), m), optest.Variant(sumToken(5, tensor.Shape{12}), m)},
		"linear": {
			func() *gorgonia.Node { return Linear(m, m, v) },
			func() *gorgonia.Node { return Linear(m, m, nil) },
			func() *gorgonia.Node { return LinearGELU(m, m, v) },
			func() *gorgonia.Node { return LinearGELU(m, m, nil) },
			func() *gorgonia.Node { return LinearActivated(m, m, v, "quick_gelu") },
			func() *gorgonia.Node { return LinearActivated(m, m, v, "gelu_tanh") },
			func() *gorgonia.Node { return LinearActivated(m, m, nil, "gelu_tanh") },
			func() *gorgonia.Node { return LinearPart(m, m, v, 0, 4) },
			func() *gorgonia.Node { return LinearPart(m, m, v, 4, 4) },
			func() *gorgonia.Node { return LinearPart(m, m, v, 4, 8) },
		},
		"two operands": {
			optest.Variant(linear{}.gradX(0), m, m), optest.Variant(linear{}.gradW(12), m, m), optest.Variant(linear{from: 1}.gradX(0), m, m), optest.Variant(linear{}.gradW(13), m, m), optest.Variant(gelu.backward(), m, m), optest.Variant(activationGrad(vector.ByGELU), m, m), optest.Variant(activationGrad(vector.BySiLU), m, m), optest.Variant(alone(vector.ByGELU).backward(), m, m), optest.Variant(alone(vector.ByGELUTanh).backward(), m, m), optest.Variant(scaleColumnsGrad(), m, m),
			optest.Variant(maxTokensGrad(3), m, m), optest.Variant(maxTokensGrad(4), m, m), optest.Variant(sortPool{3, 1}.gradX(), m, m), optest.Variant(sortPool{4, 1}.gradX(), m, m), optest.Variant(sortPool{3, 2}.gradX(), m, m),
		},
		"three matrices": {
			optest.Variant(linear{}.gradX(vector.ByGELU), m, m, m), optest.Variant(linear{}.gradX(vector.BySiLU), m, m, m), optest.Variant(linear{from: 1}.gradX(vector.ByGELU), m, m, m),
		},
		"a matrix and what it is": {
			optest.Variant(activated(vector.ByGELU), m, m), optest.Variant(activated(vector.BySiLU), m, m),
		},
		"one operand": {
			func() *gorgonia.Node { return GELU(m) },
			func() *gorgonia.Node { return Activated(m, "gelu") },
			func() *gorgonia.Node { return Activated(m, "gelu_tanh") },
			func() *gorgonia.Node { return SwiGLU(m) },
			func() *gorgonia.Node { return RepeatRows(m, 2) },
			func() *gorgonia.Node { return RepeatRows(m, 3) },
			func() *gorgonia.Node { return MeanTokens(m, nil, 3, 0) },
			func() *gorgonia.Node { return MeanTokens(m, nil, 4, 0) },
			func() *gorgonia.Node { return MeanTokens(m, nil, 4, 1) },
			func() *gorgonia.Node { return LogPlaces(m, 3, 4) },
			func() *gorgonia.Node { return LogPlaces(m, 3, 6) },
			func() *gorgonia.Node { return LogPlaces(m, 4, 4) },
			func() *gorgonia.Node { return Sinusoids(m, 3, 4) },
			func() *gorgonia.Node { return Sinusoids(m, 3, 6) },
			func() *gorgonia.Node { return Sinusoids(m, 4, 4) },
			optest.Variant(columnSums(0, 12), m), optest.Variant(columnSums(0, 13), m), optest.Variant(columnSums(1, 13), m),
		},
	})
}
