package ops

import (
	"testing"

	"gorgonia.org/gorgonia"
)

// TestElementsGolden compares outputs and gradients with torch's, from
// tools/goldens/elements.py.
func TestElementsGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	similarity := func(g get) *gorgonia.Node { return Similarity(g("f"), g("keys"), g("queue"), g("cols")) }
	builds := map[string]func(get) *gorgonia.Node{
		"add":                         func(g get) *gorgonia.Node { return Add(g("x"), g("z")) },
		"linear":                      func(g get) *gorgonia.Node { return Linear(g("input"), g("weight"), g("bias")) },
		"linear without bias":         func(g get) *gorgonia.Node { return Linear(g("input"), g("weight"), nil) },
		"layer norm":                  func(g get) *gorgonia.Node { return LayerNorm(g("x"), g("gamma"), g("beta"), 1e-5) },
		"layer norm of equal values":  func(g get) *gorgonia.Node { return LayerNorm(g("x"), g("gamma"), g("beta"), 1e-2) },
		"gelu":                        func(g get) *gorgonia.Node { return GELU(g("input")) },
		"embed":                       func(g get) *gorgonia.Node { return Embed(g("table"), g("ids")) },
		"gather rows":                 func(g get) *gorgonia.Node { return GatherRows(g("x"), g("ids"), 2) },
		"add positions":               func(g get) *gorgonia.Node { return AddPositions(g("x"), g("table"), 2) },
		"add row":                     func(g get) *gorgonia.Node { return AddRow(g("x"), g("row")) },
		"l2 normalize":                func(g get) *gorgonia.Node { return L2Normalize(g("x"), 1e-12) },
		"l2 normalize of a short row": func(g get) *gorgonia.Node { return L2Normalize(g("x"), 0.125) },
		"patch embedding":             func(g get) *gorgonia.Node { return Linear(Patchify(g("x"), 2), g("weight"), nil) },
		"prepend token":               func(g get) *gorgonia.Node { return PrependToken(g("x"), g("token"), 2) },
		"prepend tokens":              func(g get) *gorgonia.Node { return PrependToken(g("x"), g("token"), 2) },
		"strided rows":                func(g get) *gorgonia.Node { return StridedRows(g("x"), 1, 3, 3) },
		"sum":                         func(g get) *gorgonia.Node { return Sum(g("input")) },
		"mean":                        func(g get) *gorgonia.Node { return Mean(g("input")) },
		"weighted sum":                func(g get) *gorgonia.Node { return WeightedSum([]float32{0.25, -3}, g("x"), g("z")) },
		"dropout":                     func(g get) *gorgonia.Node { return Dropout(g("x"), g("bits"), 0.75) },
		"dropout of whole words":      func(g get) *gorgonia.Node { return Dropout(g("x"), g("bits"), 0.75) },
		"detach": func(g get) *gorgonia.Node {
			h := GELU(g("x"))
			return Add(Add(h, h), Detach(h))
		},
		"div scalar": func(g get) *gorgonia.Node { return DivScalar(g("x"), g("s")) },
		"mul scalar": func(g get) *gorgonia.Node { return MulScalar(g("x"), g("s")) },
		"arccos":     func(g get) *gorgonia.Node { return ArcCos(g("x")) },
		"add norm": func(g get) *gorgonia.Node {
			_, norm := AddNorm(g("h"), g("x"), g("bits"), g("gamma"), g("beta"), 0.75, 1e-5)
			return norm
		},
		"add norm, both read": func(g get) *gorgonia.Node {
			sum, norm := AddNorm(g("h"), g("x"), g("bits"), g("gamma"), g("beta"), 0.75, 1e-5)
			return Add(norm, GELU(sum))
		},
		"similarity":                          similarity,
		"similarity with a queue":             similarity,
		"similarity with a part of the queue": similarity,
		"similarity with a part of the keys":  similarity,
	}
	checkTorch(t, "elements.json", builds)
}

// checkTorch holds ops against all cases of a file, with the gradients that it has.
func checkTorch(t *testing.T, file string, builds map[string]func(get func(name string) *gorgonia.Node) *gorgonia.Node) {
	t.Helper()
	cases := torchCases(t, file)
	if len(cases) != len(builds) {
		t.Errorf("%d cases, %d of them are tested", len(cases), len(builds))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			for in := range c {
				if _, ok := c["d"+in]; ok {
					want[in] = "d" + in
				}
			}
			if len(want) == 0 {
				t.Fatal("no gradient to compare")
			}
			c.check(t, 2e-6, builds[name], want)
		})
	}
}
