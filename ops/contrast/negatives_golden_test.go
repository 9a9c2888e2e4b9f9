package contrast

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// TestNegativesGolden compares negatives, ids and accuracy with torch's, from
// tools/goldens/negatives.py.
func TestNegativesGolden(t *testing.T) {
	cases := optest.TorchCases(t, "negatives.json")
	for name, c := range map[string]struct {
		byColumn bool
		floor    float64
	}{
		"image to text": {false, 1e-4}, "text to image": {true, 1e-4}, "image to text with ids": {false, 1e-4}, "text to image with ids": {true, 1e-4},
		"image to text, no floor": {false, 0}, "text to image with ids, no floor": {true, 0},
	} {
		t.Run(name, func(t *testing.T) { goldenNegatives(t, cases[name], c.byColumn, c.floor) })
		delete(cases, name)
	}
	for name, c := range map[string]struct {
		inputs []string
		build  func(ns gorgonia.Nodes) *gorgonia.Node
	}{
		"gather ints":     {[]string{"ids", "index"}, func(ns gorgonia.Nodes) *gorgonia.Node { return layout.GatherInts(ns[0], ns[1]) }},
		"concat ints":     {[]string{"ids", "index"}, func(ns gorgonia.Nodes) *gorgonia.Node { return layout.ConcatInts(ns[0], ns[1], ns[0]) }},
		"negative labels": {[]string{"ids"}, func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeLabels(ns[0]) }},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := cases[name].EvalGolden(t, c.build, c.inputs...), cases[name].Ints("out"); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
		delete(cases, name)
	}
	t.Run("accuracy", func(t *testing.T) {
		c := cases["accuracy"]
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Accuracy(ns[0], ns[1]) }
		optest.Near(t, "accuracy", optest.Eval(t, build, c.Input("logits"), c.Input("labels")).F32, c.Floats("out"), 1e-6)
	})
	delete(cases, "accuracy")
	for name := range cases {
		t.Errorf("case %q is not tested", name)
	}
}

// goldenNegatives checks the draws for the case's noise, and every weight: noise
// that makes up for all the weights of a row leaves a tie, which 1e-4 more for one
// column must decide, so that the weights are right to 1e-4.
func goldenNegatives(t *testing.T, c optest.TorchCase, byColumn bool, floor float64) {
	in := []optest.Input{c.Input("logits"), c.Input("noise")}
	if _, ok := c["rowIDs"]; ok {
		in = append(in, c.Input("rowIDs"))
	}
	g, ns := optest.Nodes(in)
	var ids *gorgonia.Node
	if len(ns) == 3 {
		ids = ns[2]
	}
	out := SampleNegatives(ns[0], ns[1], ids, byColumn, floor)
	m := optest.Machine(t, g, ns, in, out)
	run := func() []int32 {
		t.Helper()
		check.OK(t, m.RunAll())
		return check.Get(m.Value(out))(t).I32
	}
	if got, want := run(), c.Ints("out"); !slices.Equal(got, want) {
		t.Errorf("draws: got %v, want %v", got, want)
	}
	weights, noise := c["weights"].Data, in[1].Floats()
	b := c["weights"].Shape[0]
	for j := range b {
		for i := range noise {
			noise[i] = float32(-math.Log(weights[i]))
			if weights[i] == 0 {
				noise[i] = 50 // a positive stays out whatever its noise
			} else if i%b == j {
				noise[i] += 1e-4
			}
		}
		for i, got := range run() {
			if weights[i*b+j] > 0 && int(got) != j {
				t.Errorf("row %d: column %d was drawn, not %d: one of their weights is not %v or %v", i, got, j, weights[i*b+int(got)], weights[i*b+j])
			}
		}
	}
}
