package geodesic

import (
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestGeodesicGolden compares contrast by geodesic scores, of all gradient modes, without
// and with a teacher, with PyTorch's: scores, loss and gradient, from
// tools/goldens/geodesic.py.
func TestGeodesicGolden(t *testing.T) {
	cases := optest.TorchCases(t, "geodesic.json")
	shared := cases["shared"]
	delete(cases, "shared")
	if len(cases) != 16 {
		t.Errorf("got %d cases, want 16", len(cases))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { goldenContrast(t, name, shared, c) })
	}
}

func goldenContrast(t *testing.T, name string, shared, c optest.TorchCase) {
	paths := shared.Input("paths")
	for i, v := range paths.Data.([]float32) {
		if v > 1e29 { // JSON has no infinity
			paths.Data.([]float32)[i] = float32(math.Inf(1))
		}
	}
	owner, labels := optest.I32s("owner", shared.Ints("owner"), len(shared.Ints("owner"))), optest.I32s("labels", shared.Ints("labels"), len(shared.Ints("labels")))
	in := []optest.Input{
		shared.Input("f"), shared.Input("keys"), shared.Input("queue"), optest.I32s("pointer", shared.Ints("labels")[:1]), owner, shared.Input("reach"),
		shared.Input("centres"), paths, optest.I32s("count", []int32{int32(shared["centres"].Shape[0])}),
		shared.Input("teacher"), labels, optest.In("tau", nil, []float32{.1}), optest.In("alpha", nil, []float32{.4}),
	}
	g, ns := optest.Nodes(in)
	k := &geoCase{
		cols: -1, entries: 1, limit: 4 * math.Pi, direct: strings.Contains(name, "positives"),
		same: strings.Contains(name, "same_cluster"), straight: strings.Contains(name, "straight_through"),
	}
	if strings.Contains(name, "soft_entry") {
		k.entries, k.softness = 3, .05
	}
	s := k.build(ns)
	a := contrast.CrossEntropyArgs{Logits: arith.DivScalar(s, ns[11]), Labels: ns[10]}
	if strings.Contains(name, "teacher") {
		of := append(gorgonia.Nodes{}, ns...)
		of[0] = ns[9]
		a.Teacher, a.Alpha = arith.DivScalar(k.build(of), ns[11]), ns[12]
	}
	loss := contrast.CrossEntropy(a)
	grads := check.Get(gorgonia.Grad(loss, ns[0]))(t)
	m := optest.Machine(t, g, ns, in, s, loss, grads[0])
	check.OK(t, m.RunAll())
	for _, want := range []struct {
		name string
		node *gorgonia.Node
		tol  float64
	}{{"scores", s, 1e-5}, {"loss", loss, 1e-5}, {"grad", grads[0], 1e-4}} {
		v := check.Get(m.Value(want.node))(t)
		optest.Near(t, want.name, v.F32, c.Floats(want.name), want.tol)
	}
}
