package ops

import (
	"testing"

	"gorgonia.org/gorgonia"
)

// TestScoresGolden compares the ops of pair scores and their gradients with torch's, from
// tools/goldens/scores.py.
func TestScoresGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	blocks := func(transposed bool) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node { return BlockDiagonal(g("x"), g("w"), transposed) }
	}
	distance := func(d Distance) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			return NegativeDistance(d, g("f"), g("keys"), g("queue"), g("cols"))
		}
	}
	builds := map[string]func(get) *gorgonia.Node{
		"groups": func(g get) *gorgonia.Node {
			x, shape := g("x"), g("x").Shape()
			return Reshape(L2Normalize(Reshape(x, 3*shape[0], shape[1]/3), .125), shape[0], shape[1])
		},
		"diagonal":                  func(g get) *gorgonia.Node { return Diagonal(g("x"), g("w")) },
		"blocks":                    blocks(false),
		"blocks, transposed":        blocks(true),
		"blocks of one":             blocks(false),
		"blocks of one, transposed": blocks(true),
		"dense":                     blocks(false),
		"dense, transposed":         blocks(true),
		"mul exp":                   func(g get) *gorgonia.Node { return MulExp(g("x"), g("s")) },
		"combine":                   func(g get) *gorgonia.Node { return Combine([]float32{.25, -3, .5}, g("x"), g("v"), g("z")) },
		"l2":                        distance(Distance{Kind: "l2"}),
		"angle of 1":                distance(Distance{Kind: "angle", Spheres: 1}),
		"angle of 3":                distance(Distance{Kind: "angle", Spheres: 3}),
	}
	checkTorch(t, "scores.json", builds)
}
