package optest

import (
	"encoding/json"
	"os"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/geoalign/geoalign/internal/check"
)

// TorchCase holds the named arrays of one case of a file under testdata that a script
// under tools/goldens wrote.
type TorchCase map[string]struct {
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

// TorchCases reads a file of cases of the package under test.
func TorchCases(t *testing.T, file string) map[string]TorchCase {
	t.Helper()
	b := check.Get(os.ReadFile("testdata/" + file))(t)
	var cases map[string]TorchCase
	check.OK(t, json.Unmarshal(b, &cases))
	return cases
}

// Floats returns an array as float32.
func (c TorchCase) Floats(name string) []float32 {
	x := make([]float32, len(c[name].Data))
	for i, v := range c[name].Data {
		x[i] = float32(v)
	}
	return x
}

// Ints returns an array as int32.
func (c TorchCase) Ints(name string) []int32 {
	x := make([]int32, len(c[name].Data))
	for i, v := range c[name].Data {
		x[i] = int32(v)
	}
	return x
}

// torchInts are the arrays that are int32 inputs.
var torchInts = map[string]bool{"lengths": true, "memory": true, "bits": true, "index": true, "labels": true,
	"rowIDs": true, "colIDs": true, "cols": true, "ids": true}

// Input returns an array as a graph input.
func (c TorchCase) Input(name string) Input {
	a := c[name]
	in := Input{Name: name, Shape: a.Shape}
	if !torchInts[name] {
		in.Data = c.Floats(name)
		return in
	}
	in.Data = c.Ints(name)
	return in
}

// Check compares build's output with "out", and the gradients for the wanted
// inputs under the output gradient "dy" (none for a scalar) with the arrays that
// want names for each of them.
func (c TorchCase) Check(t *testing.T, tol float64, build func(get func(name string) *gorgonia.Node) *gorgonia.Node,
	want map[string]string) {
	t.Helper()
	var inputs []Input
	at := map[string]int{}
	for name := range c {
		at[name] = len(inputs)
		inputs = append(inputs, c.Input(name))
	}
	g, ns := Nodes(inputs)
	get := func(name string) *gorgonia.Node {
		if i, ok := at[name]; ok {
			return ns[i]
		}
		return nil
	}
	out := build(get)
	cost := out
	if dy := get("dy"); dy != nil {
		cost = Dot(out, dy)
	}
	var names []string
	var wrt gorgonia.Nodes
	for name := range want {
		names = append(names, name)
		wrt = append(wrt, get(name))
	}
	grads := check.Get(gorgonia.Grad(cost, wrt...))(t)
	m := Machine(t, g, ns, inputs, append(gorgonia.Nodes{out, cost}, grads...)...)
	check.OK(t, m.RunAll())
	value := func(n *gorgonia.Node) []float32 {
		a := check.Get(m.Value(n))(t)
		if !a.Shape.Eq(n.Shape()) {
			t.Errorf("shape %v, want %v", a.Shape, n.Shape())
		}
		return a.F32
	}
	Near(t, "output", value(out), c.Floats("out"), tol)
	for i, name := range names {
		if !grads[i].Shape().Eq(tensor.Shape(c[want[name]].Shape)) {
			t.Errorf("gradient of %s has shape %v", name, grads[i].Shape())
		}
		Near(t, want[name], value(grads[i]), c.Floats(want[name]), tol)
	}
}

// CheckTorch holds ops against all cases of a file, with the gradients that it has.
func CheckTorch(t *testing.T, file string,
	builds map[string]func(get func(name string) *gorgonia.Node) *gorgonia.Node) {
	t.Helper()
	CheckTorchNear(t, file, 2e-6, builds)
}

// CheckTorchNear is CheckTorch with another tolerance, relative to the largest element.
func CheckTorchNear(t *testing.T, file string, tol float64,
	builds map[string]func(get func(name string) *gorgonia.Node) *gorgonia.Node) {
	t.Helper()
	cases := TorchCases(t, file)
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
			c.Check(t, tol, builds[name], want)
		})
	}
}

// EvalGolden returns build's int32 output for the named inputs.
func (c TorchCase) EvalGolden(t *testing.T, build func(ns gorgonia.Nodes) *gorgonia.Node, names ...string) []int32 {
	t.Helper()
	var in []Input
	for _, name := range names {
		in = append(in, c.Input(name))
	}
	return Eval(t, build, in...).I32
}
