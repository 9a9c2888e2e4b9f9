package ops

import (
	"math"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestGeodesicGolden compares contrast by geodesic scores, of all gradient modes, without
// and with a teacher, with PyTorch's: scores, loss and gradient, from
// tools/goldens/geodesic.py.
func TestGeodesicGolden(t *testing.T) {
	cases := torchCases(t, "geodesic.json")
	shared := cases["shared"]
	delete(cases, "shared")
	if len(cases) != 16 {
		t.Errorf("got %d cases, want 16", len(cases))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { goldenContrast(t, name, shared, c) })
	}
}

func goldenContrast(t *testing.T, name string, shared, c torchCase) {
	paths := shared.input("paths")
	for i, v := range paths.data.([]float32) {
		if v > 1e29 { // JSON has no infinity
			paths.data.([]float32)[i] = float32(math.Inf(1))
		}
	}
	owner, labels := i32s("owner", shared.ints("owner"), len(shared.ints("owner"))), i32s("labels", shared.ints("labels"), len(shared.ints("labels")))
	in := []input{
		shared.input("f"), shared.input("keys"), shared.input("queue"), i32s("pointer", shared.ints("labels")[:1]), owner, shared.input("reach"),
		shared.input("centres"), paths, i32s("count", []int32{int32(shared["centres"].Shape[0])}),
		shared.input("teacher"), labels, {"tau", nil, []float32{.1}}, {"alpha", nil, []float32{.4}},
	}
	g, ns := nodes(in)
	k := &geoCase{
		cols: -1, entries: 1, limit: 4 * math.Pi, direct: strings.Contains(name, "positives"),
		same: strings.Contains(name, "same_cluster"), straight: strings.Contains(name, "straight_through"),
	}
	if strings.Contains(name, "soft_entry") {
		k.entries, k.softness = 3, .05
	}
	s := k.build(ns)
	a := CrossEntropyArgs{Logits: DivScalar(s, ns[11]), Labels: ns[10]}
	if strings.Contains(name, "teacher") {
		of := append(gorgonia.Nodes{}, ns...)
		of[0] = ns[9]
		a.Teacher, a.Alpha = DivScalar(k.build(of), ns[11]), ns[12]
	}
	loss := CrossEntropy(a)
	grads, err := gorgonia.Grad(loss, ns[0])
	if err != nil {
		t.Fatal(err)
	}
	m := machine(t, g, ns, in, s, loss, grads[0])
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name string
		node *gorgonia.Node
		tol  float64
	}{{"scores", s, 1e-5}, {"loss", loss, 1e-5}, {"grad", grads[0], 1e-4}} {
		v, err := m.Value(want.node)
		if err != nil {
			t.Fatal(err)
		}
		near(t, want.name, v.F32, c.floats(want.name), want.tol)
	}
}
