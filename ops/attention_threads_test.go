package ops

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
)

// TestThreads checks that attention, cross-entropy and learned scales give the
// same bits on one thread and on three.
func TestThreads(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	run := func(threads int, build func(ns gorgonia.Nodes) *gorgonia.Node, wrt int, inputs []input) []float32 {
		e, err := kernel.New(kernel.Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		g, ns := nodes(inputs)
		cost := build(ns)
		grads, err := gorgonia.Grad(cost, ns[:wrt]...)
		if err != nil {
			t.Fatal(err)
		}
		outputs := append(gorgonia.Nodes{cost}, grads...)
		m, err := exec.Compile(g, exec.Config{Engine: e, Outputs: outputs})
		if err != nil {
			t.Fatal(err)
		}
		for i, in := range inputs {
			if err := m.SetInput(ns[i], in.data); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.RunAll(); err != nil {
			t.Fatal(err)
		}
		var all []float32
		for _, n := range outputs {
			a, err := m.Value(n)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, a.F32...)
		}
		return all
	}
	const rows, l, heads, d = 7, 9, 2, 8
	attention := func(ns gorgonia.Nodes) *gorgonia.Node {
		return dotForTest(CrossAttention(ns[0], ns[1], ns[3], nil, nil, l, l, heads, 1), ns[2])
	}
	loss := func(ns gorgonia.Nodes) *gorgonia.Node {
		return CrossEntropy(CrossEntropyArgs{Logits: DivScalar(ns[0], ns[1]), Teacher: ns[2], Alpha: ns[3], Labels: ns[4]})
	}
	for _, c := range []struct {
		name   string
		build  func(ns gorgonia.Nodes) *gorgonia.Node
		wrt    int
		inputs []input
	}{
		{"attention", attention, 2, []input{
			f32s(r, "q", rows*l, d), f32s(r, "kv", 3*l, 2*d), f32s(r, "dy", rows*l, d), i32s("index", []int32{0, 2, 1, 0, 2, 2, 0}, rows),
		}},
		{"loss", loss, 2, []input{
			f32s(r, "logits", 5, 3000), {"temperature", nil, []float32{.07}}, f32s(r, "teacher", 5, 3000), {"alpha", nil, []float32{.4}},
			i32s("labels", []int32{5, 6, -100, 8, 9}, 5),
		}},
	} {
		if one, three := run(1, c.build, c.wrt, c.inputs), run(3, c.build, c.wrt, c.inputs); !slices.Equal(one, three) {
			t.Errorf("%s: results depend on the number of threads", c.name)
		}
	}
}
