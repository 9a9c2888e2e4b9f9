package conv

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestGolden compares outputs and gradients with torch's, from tools/goldens/conv.py.
func TestGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	conv := func(g Geometry) func(get) *gorgonia.Node {
		return func(in get) *gorgonia.Node { return Conv(in("x"), in("w"), g) }
	}
	pool := func(g Geometry) func(get) *gorgonia.Node {
		return func(in get) *gorgonia.Node { return MaxPool(in("x"), g) }
	}
	half := Geometry{6, 7, 3, 2, 1}
	folds := func(in get) *gorgonia.Node {
		add := in("add")
		return Folded(in("w"), half, nn.BatchNormArgs{X: in("x"), Gamma: in("gamma"), Beta: in("beta"), Mean: in("mean"), Variance: in("variance"), Eps: 1e-5, Add: add, ReLU: add != nil})
	}
	builds := map[string]func(get) *gorgonia.Node{
		"stem":                     conv(Geometry{9, 7, 7, 2, 3}),
		"every second of 7":        conv(Geometry{7, 7, 3, 2, 1}),
		"without a border":         conv(Geometry{7, 6, 3, 2, 0}),
		"border":                   conv(Geometry{4, 5, 3, 1, 1}),
		"one place":                conv(Geometry{3, 4, 1, 1, 0}),
		"one place of four":        conv(Geometry{7, 5, 1, 2, 0}),
		"wide steps":               conv(Geometry{8, 8, 3, 3, 1}),
		"max pool":                 pool(Geometry{7, 6, 3, 2, 1}),
		"max pool without overlap": pool(Geometry{7, 6, 2, 2, 0}),
		"max pool of equal values": pool(Geometry{4, 4, 3, 2, 1}),
		"from planes":              func(in get) *gorgonia.Node { return FromPlanes(in("x")) },
		"convolution, batch norm, residual and relu": func(in get) *gorgonia.Node {
			y, _, _ := nn.BatchNorm(nn.BatchNormArgs{X: Conv(in("x"), in("w"), half), Gamma: in("gamma"), Beta: in("beta"), Eps: 1e-5, Add: in("add"), ReLU: true})
			return y
		},
	}
	cases := optest.TorchCases(t, "conv.json")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			build := builds[name]
			if build == nil {
				build = folds
			}
			wrt := map[string]string{}
			for in := range c {
				if _, ok := c["d"+in]; ok {
					wrt[in] = "d" + in
				}
			}
			if len(wrt) > 0 {
				c.Check(t, 4e-6, build, wrt)
				return
			}
			// No gradient flows through a folded convolution.
			var in []optest.Input
			at := map[string]int{}
			for name := range c {
				at[name] = len(in)
				in = append(in, c.Input(name))
			}
			got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
				return build(func(name string) *gorgonia.Node {
					if i, ok := at[name]; ok {
						return ns[i]
					}
					return nil
				})
			}, in...)
			optest.Near(t, name, got.F32, c.Floats("out"), 4e-6)
		})
	}
	if len(cases) != len(builds)+2 {
		t.Errorf("%d cases, %d of them are tested", len(cases), len(builds)+2)
	}
}
