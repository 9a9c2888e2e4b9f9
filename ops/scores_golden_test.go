package ops_test

import (
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// TestScoresGolden compares the ops of pair scores and their gradients with torch's, from
// tools/goldens/scores.py.
func TestScoresGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	blocks := func(transposed bool) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node { return similarity.BlockDiagonal(g("x"), g("w"), transposed) }
	}
	distance := func(d similarity.Distance) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			return similarity.NegativeDistance(d, g("f"), g("keys"), g("queue"), g("cols"))
		}
	}
	builds := map[string]func(get) *gorgonia.Node{
		"groups": func(g get) *gorgonia.Node {
			x, shape := g("x"), g("x").Shape()
			return layout.Reshape(nn.L2Normalize(layout.Reshape(x, 3*shape[0], shape[1]/3), .125), shape[0], shape[1])
		},
		"diagonal":                  func(g get) *gorgonia.Node { return similarity.Diagonal(g("x"), g("w")) },
		"blocks":                    blocks(false),
		"blocks, transposed":        blocks(true),
		"blocks of one":             blocks(false),
		"blocks of one, transposed": blocks(true),
		"dense":                     blocks(false),
		"dense, transposed":         blocks(true),
		"mul exp":                   func(g get) *gorgonia.Node { return arith.MulExp(g("x"), g("s")) },
		"combine":                   func(g get) *gorgonia.Node { return arith.Combine([]float32{.25, -3, .5}, g("x"), g("v"), g("z")) },
		"l2":                        distance(similarity.Distance{Kind: "l2"}),
		"angle of 1":                distance(similarity.Distance{Kind: "angle", Spheres: 1}),
		"angle of 3":                distance(similarity.Distance{Kind: "angle", Spheres: 3}),
	}
	optest.CheckTorch(t, "scores.json", builds)
}
