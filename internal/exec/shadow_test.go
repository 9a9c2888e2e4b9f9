package exec_test

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestShadow hands bfloat16 copies to every use of an input, also through an alias
// under another shape, and to nothing else.
func TestShadow(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"))
	y := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("y"))
	unused := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("unused"))
	ids := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("ids"))
	var seen [][]uint16
	look := func(name string, in ...*gorgonia.Node) *gorgonia.Node {
		return (&testOp{kind: name, step: func(c *exec.Call) {
			for _, a := range c.In {
				seen = append(seen, a.BF16)
			}
			clear(c.Out.F32)
		}}).apply(t, tensor.Shape{2, 3}, in...)
	}
	flat := (&testOp{kind: "flat", alias: true}).apply(t, tensor.Shape{6}, x)
	first := look("first", x, y)
	second := look("second", flat, x)
	third := look("third", first, second, ids)
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{third}}))(t)
	for n, v := range map[*gorgonia.Node]any{x: make([]float32, 6), y: make([]float32, 6), ids: make([]int32, 2)} {
		check.OK(t, m.SetInput(n, v))
	}
	a, b := make([]uint16, 6), []uint16{1, 2, 3, 4, 5, 6}
	for i, shadow := range [][]uint16{nil, a, b, nil} {
		check.OK(t, m.SetShadow(x, shadow))
		seen = seen[:0]
		check.OK(t, m.RunAll())
		want := [][]uint16{shadow, nil, shadow, shadow, nil, nil, nil}
		for k := range want {
			if (seen[k] == nil) != (want[k] == nil) || !slices.Equal(seen[k], want[k]) {
				t.Errorf("round %d: operand %d has the copy %v, want %v", i, k, seen[k], want[k])
			}
		}
		value, err := m.Value(x)
		if err != nil || !slices.Equal(value.BF16, shadow) {
			t.Errorf("round %d: the input's value has the copy %v (%v), want %v", i, value.BF16, err, shadow)
		}
	}
	// New values keep the copy: it is the caller's to renew.
	check.OK(t, m.SetShadow(x, b))
	check.OK(t, m.SetInput(x, make([]float32, 6)))
	seen = seen[:0]
	if err := m.RunAll(); err != nil || !slices.Equal(seen[0], b) {
		t.Errorf("after new values the copy is %v (%v), want %v", seen[0], err, b)
	}
	for _, c := range []struct {
		node   *gorgonia.Node
		shadow []uint16
		want   string
	}{
		{x, make([]uint16, 5), "input x has 6 elements, its bfloat16 copy 5"},
		{x, []uint16{}, "input x has 6 elements, its bfloat16 copy 0"},
		{ids, make([]uint16, 2), "only float32 has a bfloat16 copy"},
	} {
		check.Error(t, m.SetShadow(c.node, c.shadow), c.want)
	}
	if value, _ := m.Value(x); !slices.Equal(value.BF16, b) {
		t.Error("a refused copy left a trace")
	}
	if err := m.SetShadow(unused, make([]uint16, 6)); err != nil {
		t.Errorf("an input that nothing depends on: %v", err)
	}
	if n := allocs.PerRun(20, func() {
		check.OK(t, m.SetShadow(x, a))
	}); n != 0 {
		t.Errorf("SetShadow allocates %v times", n)
	}
}
