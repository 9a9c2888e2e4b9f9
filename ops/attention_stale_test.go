package ops

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestStaleMemory runs a program on one set of integers and then on another: the
// result must be that of a fresh program, so everything that the second run does
// not compute must be cleared.
func TestStaleMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	qkv, q, kv := f32s(r, "qkv", 6, 12), f32s(r, "q", 6, 4), f32s(r, "kv", 6, 8)
	ints := func(name string, x ...int32) input { return i32s(name, x, len(x)) }
	count := func(n int32) input { return i32s("count", []int32{n}) }
	logits, f := f32s(r, "logits", 2, 6), f32s(r, "f", 2, 4)
	for _, c := range []struct {
		name          string
		wrt           int
		build         func(ns gorgonia.Nodes) *gorgonia.Node
		fixed         []input
		before, after []input
	}{
		{"self attention", 1, func(ns gorgonia.Nodes) *gorgonia.Node { return SelfAttention(ns[0], ns[1], nil, 3, 2, 1) },
			[]input{qkv}, []input{ints("lengths", 3, 3)}, []input{ints("lengths", 1, 0)}},
		{"cross attention", 2, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossAttention(ns[0], ns[1], ns[2], ns[3], nil, 3, 3, 2, 1)
		}, []input{q, kv}, []input{ints("index", 0, 1), ints("lengths", 3, 3)}, []input{ints("index", 0, 0), ints("lengths", 0, 2)}},
		{"similarity", 2, func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], ns[1], ns[2], ns[3]) },
			[]input{f, f32s(r, "keys", 3, 4), f32s(r, "queue", 3, 4)}, []input{count(6)}, []input{count(2)}},
		{"labels", 1, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1], Cols: ns[2]})
		}, []input{logits}, []input{ints("labels", 1, 2), count(6)}, []input{ints("labels", -1, 2), count(4)}},
		{"ids", 1, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], RowIDs: ns[1], ColIDs: ns[2], Cols: ns[3]})
		}, []input{logits}, []input{ints("rows", 1, 2), ints("cols", 1, 2, 1, 2, 1, 2), count(6)},
			[]input{ints("rows", 2, 3), ints("cols", 2, -100, 1, 2, 3, 3), count(4)}},
	} {
		run := func(sets ...[]input) (all []float32) {
			inputs := slices.Concat(c.fixed, sets[0])
			g, ns := nodes(inputs)
			out := c.build(ns)
			cost := out
			if len(out.Shape()) > 0 {
				cost = dotForTest(out, out)
			}
			grads, err := gorgonia.Grad(cost, ns[:c.wrt]...)
			if err != nil {
				t.Fatal(err)
			}
			outputs := append(gorgonia.Nodes{out}, grads...)
			m := machine(t, g, ns, inputs, outputs...)
			for _, set := range sets {
				for i, in := range set {
					if err := m.SetInput(ns[len(c.fixed)+i], in.data); err != nil {
						t.Fatal(err)
					}
				}
				if err := m.RunAll(); err != nil {
					t.Fatal(err)
				}
			}
			for _, n := range outputs {
				a, err := m.Value(n)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, a.F32...)
			}
			return all
		}
		if got, want := run(c.before, c.after), run(c.after); !slices.Equal(got, want) {
			t.Errorf("%s: second run gives %v, a fresh program %v", c.name, got, want)
		}
	}
}
