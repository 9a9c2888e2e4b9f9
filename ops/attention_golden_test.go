package ops

import (
	"encoding/json"
	"os"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// torchCase holds the named arrays of one case of a file under testdata that a script
// under tools/goldens wrote.
type torchCase map[string]struct {
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

// torchCases reads a file of cases.
func torchCases(t *testing.T, file string) map[string]torchCase {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]torchCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// floats returns an array as float32.
func (c torchCase) floats(name string) []float32 {
	x := make([]float32, len(c[name].Data))
	for i, v := range c[name].Data {
		x[i] = float32(v)
	}
	return x
}

// ints returns an array as int32.
func (c torchCase) ints(name string) []int32 {
	x := make([]int32, len(c[name].Data))
	for i, v := range c[name].Data {
		x[i] = int32(v)
	}
	return x
}

// torchInts are the arrays that are int32 inputs.
var torchInts = map[string]bool{"lengths": true, "bits": true, "index": true, "labels": true, "rowIDs": true, "colIDs": true, "cols": true, "ids": true}

// input returns an array as a graph input.
func (c torchCase) input(name string) input {
	a := c[name]
	in := input{name: name, shape: a.Shape}
	if !torchInts[name] {
		in.data = c.floats(name)
		return in
	}
	in.data = c.ints(name)
	return in
}

// check compares build's output with "out", and the gradients for the wanted
// inputs under the output gradient "dy" (none for a scalar) with the arrays that
// want names for each of them.
func (c torchCase) check(t *testing.T, tol float64, build func(get func(name string) *gorgonia.Node) *gorgonia.Node, want map[string]string) {
	t.Helper()
	var inputs []input
	at := map[string]int{}
	for name := range c {
		at[name] = len(inputs)
		inputs = append(inputs, c.input(name))
	}
	g, ns := nodes(inputs)
	get := func(name string) *gorgonia.Node {
		if i, ok := at[name]; ok {
			return ns[i]
		}
		return nil
	}
	out := build(get)
	cost := out
	if dy := get("dy"); dy != nil {
		cost = dotForTest(out, dy)
	}
	var names []string
	var wrt gorgonia.Nodes
	for name := range want {
		names = append(names, name)
		wrt = append(wrt, get(name))
	}
	grads, err := gorgonia.Grad(cost, wrt...)
	if err != nil {
		t.Fatal(err)
	}
	m := machine(t, g, ns, inputs, append(gorgonia.Nodes{out, cost}, grads...)...)
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	value := func(n *gorgonia.Node) []float32 {
		a, err := m.Value(n)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Shape.Eq(n.Shape()) {
			t.Errorf("shape %v, want %v", a.Shape, n.Shape())
		}
		return a.F32
	}
	near(t, "output", value(out), c.floats("out"), tol)
	for i, name := range names {
		if !grads[i].Shape().Eq(tensor.Shape(c[want[name]].Shape)) {
			t.Errorf("gradient of %s has shape %v", name, grads[i].Shape())
		}
		near(t, want[name], value(grads[i]), c.floats(want[name]), tol)
	}
}

func TestAttentionGolden(t *testing.T) {
	for name, c := range torchCases(t, "attention.json") {
		t.Run(name, func(t *testing.T) {
			keep := float32(1)
			if _, ok := c["bits"]; ok {
				keep = 0.75
			}
			if _, ok := c["qkv"]; ok {
				c.check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
					return SelfAttention(get("qkv"), get("lengths"), get("bits"), 5, 2, keep)
				}, map[string]string{"qkv": "dqkv"})
				return
			}
			c.check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
				return CrossAttention(get("q"), get("kv"), get("index"), get("lengths"), get("bits"), 3, 34, 2, keep)
			}, map[string]string{"q": "dq", "kv": "dkv"})
		})
	}
}

func TestCrossEntropyGolden(t *testing.T) {
	for name, c := range torchCases(t, "crossentropy.json") {
		t.Run(name, func(t *testing.T) {
			c.check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{
					Logits: get("logits"), Labels: get("labels"), RowIDs: get("rowIDs"), ColIDs: get("colIDs"),
					Teacher: get("teacher"), Alpha: get("alpha"), Cols: get("cols"),
				})
			}, map[string]string{"logits": "dlogits"})
		})
	}
}
