package ops_test

import (
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// TestElementsGolden compares outputs and gradients with torch's, from
// tools/goldens/elements.py.
func TestElementsGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	rowProducts := func(g get) *gorgonia.Node { return similarity.RowProducts(g("x"), g("z")) }
	similarity := func(g get) *gorgonia.Node { return similarity.Similarity(g("f"), g("keys"), g("queue"), g("cols")) }
	builds := map[string]func(get) *gorgonia.Node{
		"add":                        func(g get) *gorgonia.Node { return arith.Add(g("x"), g("z")) },
		"linear":                     func(g get) *gorgonia.Node { return nn.Linear(g("input"), g("weight"), g("bias")) },
		"linear without bias":        func(g get) *gorgonia.Node { return nn.Linear(g("input"), g("weight"), nil) },
		"layer norm":                 func(g get) *gorgonia.Node { return nn.LayerNorm(g("x"), g("gamma"), g("beta"), 1e-5) },
		"layer norm of equal values": func(g get) *gorgonia.Node { return nn.LayerNorm(g("x"), g("gamma"), g("beta"), 1e-2) },
		"batch norm": func(g get) *gorgonia.Node {
			y, _, _ := nn.BatchNorm(nn.BatchNormArgs{X: g("x"), Gamma: g("gamma"), Beta: g("beta"), Eps: 1e-5})
			return y
		},
		"batch norm of rows that count": func(g get) *gorgonia.Node {
			y, _, _ := nn.BatchNorm(nn.BatchNormArgs{X: g("x"), Gamma: g("gamma"), Beta: g("beta"), Lengths: g("lengths"), Len: 3, Eps: 1e-5})
			return y
		},
		"batch norm by given statistics": func(g get) *gorgonia.Node {
			y, _, _ := nn.BatchNorm(nn.BatchNormArgs{X: g("x"), Gamma: g("gamma"), Beta: g("beta"), Mean: g("mean"), Variance: g("variance"), Eps: 1e-5})
			return y
		},
		"gelu":      func(g get) *gorgonia.Node { return nn.GELU(g("input")) },
		"gelu_tanh": func(g get) *gorgonia.Node { return nn.LinearActivated(g("input"), g("weight"), g("bias"), "gelu_tanh") },
		"quick_gelu": func(g get) *gorgonia.Node {
			return nn.LinearActivated(g("input"), g("weight"), g("bias"), "quick_gelu")
		},
		"silu":          func(g get) *gorgonia.Node { return nn.LinearActivated(g("input"), g("weight"), nil, "silu") },
		"tanh":          func(g get) *gorgonia.Node { return nn.Tanh(g("input")) },
		"swiglu":        func(g get) *gorgonia.Node { return nn.SwiGLU(g("x")) },
		"scale shift":   func(g get) *gorgonia.Node { return nn.ScaleShift(g("x"), g("scale"), g("shift"), 1) },
		"scale columns": func(g get) *gorgonia.Node { return nn.ScaleColumns(g("x"), g("scale")) },
		"repeat rows":   func(g get) *gorgonia.Node { return nn.RepeatRows(g("x"), 3) },
		"mean tokens":   func(g get) *gorgonia.Node { return nn.MeanTokens(g("x"), g("lengths"), 3, 0) },
		"mean patches":  func(g get) *gorgonia.Node { return nn.MeanTokens(g("x"), nil, 3, 1) },
		"max tokens":    func(g get) *gorgonia.Node { return nn.MaxTokens(g("x"), g("lengths"), 3) },
		"row products":  rowProducts,
		"margin":        func(g get) *gorgonia.Node { return contrast.Margin(g("x"), g("z"), g("weights"), 0.5) },
		"worst":         func(g get) *gorgonia.Node { return contrast.Worst(g("x"), g("z")) },
		"soft pool":     func(g get) *gorgonia.Node { return nn.SoftPool(g("x"), g("scores"), g("lengths"), 3) },
		"sort pool":     func(g get) *gorgonia.Node { return nn.SortPool(g("x"), g("scores"), g("lengths"), 3, 0.5) },
		"affinity": func(g get) *gorgonia.Node {
			return attention.Affinity(g("q"), g("k"), g("v"), g("lengths"), 3)
		},
		"embed":                       func(g get) *gorgonia.Node { return nn.Embed(g("table"), g("ids")) },
		"gather rows":                 func(g get) *gorgonia.Node { return nn.GatherRows(g("x"), g("ids"), 2) },
		"add positions":               func(g get) *gorgonia.Node { return nn.AddPositions(g("x"), g("table"), 2) },
		"l2 normalize":                func(g get) *gorgonia.Node { return nn.L2Normalize(g("x"), 1e-12) },
		"l2 normalize of a short row": func(g get) *gorgonia.Node { return nn.L2Normalize(g("x"), 0.125) },
		"patch embedding":             func(g get) *gorgonia.Node { return nn.Linear(nn.Patchify(g("x"), 2), g("weight"), nil) },
		"prepend token":               func(g get) *gorgonia.Node { return nn.PrependToken(g("x"), g("token"), 2) },
		"prepend tokens":              func(g get) *gorgonia.Node { return nn.PrependToken(g("x"), g("token"), 2) },
		"strided rows":                func(g get) *gorgonia.Node { return layout.StridedRows(g("x"), 1, 3, 3) },
		"sum":                         func(g get) *gorgonia.Node { return arith.Sum(g("input")) },
		"mean":                        func(g get) *gorgonia.Node { return arith.Mean(g("input")) },
		"weighted sum":                func(g get) *gorgonia.Node { return arith.WeightedSum([]float32{0.25, -3}, g("x"), g("z")) },
		"dropout":                     func(g get) *gorgonia.Node { return nn.Dropout(g("x"), g("bits"), 0.75) },
		"dropout of whole words":      func(g get) *gorgonia.Node { return nn.Dropout(g("x"), g("bits"), 0.75) },
		"detach": func(g get) *gorgonia.Node {
			h := nn.GELU(g("x"))
			return arith.Add(arith.Add(h, h), op.Detach(h))
		},
		"sum products":         func(g get) *gorgonia.Node { return arith.SumProducts(g("x"), g("z"), 3) },
		"dot products of rows": func(g get) *gorgonia.Node { return arith.SumProducts(g("x"), g("z"), 1) },
		"outer":                func(g get) *gorgonia.Node { return arith.Outer(g("x"), g("z")) },
		"div scalar":           func(g get) *gorgonia.Node { return arith.DivScalar(g("x"), g("s")) },
		"mul scalar":           func(g get) *gorgonia.Node { return arith.MulScalar(g("x"), g("s")) },
		"add norm": func(g get) *gorgonia.Node {
			_, norm := nn.AddNorm(nn.AddNormArgs{H: g("h"), X: g("x"), Bits: g("bits"), Gamma: g("gamma"), Beta: g("beta"), Keep: 0.75, Eps: 1e-5})
			return norm
		},
		"add norm, both read": func(g get) *gorgonia.Node {
			sum, norm := nn.AddNorm(nn.AddNormArgs{H: g("h"), X: g("x"), Bits: g("bits"), Gamma: g("gamma"), Beta: g("beta"), Keep: 0.75, Eps: 1e-5})
			return arith.Add(norm, nn.GELU(sum))
		},
		"similarity":                          similarity,
		"similarity with a queue":             similarity,
		"similarity with a part of the queue": similarity,
		"similarity with a part of the keys":  similarity,
	}
	optest.CheckTorch(t, "elements.json", builds)
}
