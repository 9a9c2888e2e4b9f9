package ops

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestPoolSimilarityFuzz compares pools of any size, pointer and number of columns with
// the queue that the batch was written into, and the gradient with finite differences.
func TestPoolSimilarityFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	for i := range 60 {
		k := randomGeoCase(r)
		k.count = 0 // plain cosines
		in := k.inputs()
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return PoolSimilarity(ns[0], k.pool(ns)) }
		near(t, "scores", eval(t, build, in...).F32, k.oracle().scores(), 1e-5)
		checkGrad(t, build, []int{0}, 1e-1, 1e-3, in...)
		if t.Failed() {
			t.Fatalf("case %d: %d rows, batch %d at %d of %d, cols %d", i, k.b, k.batch, k.pointer, k.n, k.cols)
		}
	}
}

// TestPoolLayout writes out which row is which column, around the end of the queue too.
func TestPoolLayout(t *testing.T) {
	for _, c := range []struct {
		pointer, cols int32
		want          []float32
	}{
		{0, 5, []float32{-1, -2, 3, 4, 5}},
		{2, 5, []float32{1, 2, -1, -2, 5}},
		{3, 5, []float32{1, 2, 3, -1, -2}},
		{4, 5, []float32{-2, 2, 3, 4, -1}},
		{4, 3, []float32{-2, 2, 3, 0, 0}},
		{2, 3, []float32{1, 2, -1, 0, 0}},
		{3, 1, []float32{1, 0, 0, 0, 0}},
		{0, 0, []float32{0, 0, 0, 0, 0}},
	} {
		in := []input{
			{"f", []int{1, 1}, []float32{1}}, {"keys", []int{2, 1}, []float32{-1, -2}}, {"queue", []int{5, 1}, []float32{1, 2, 3, 4, 5}},
			i32s("pointer", []int32{c.pointer}), i32s("cols", []int32{c.cols}),
		}
		got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return PoolSimilarity(ns[0], Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3], Cols: ns[4]})
		}, in...).F32
		if !slices.Equal(got, c.want) {
			t.Errorf("pointer %d, cols %d: got %v, want %v", c.pointer, c.cols, got, c.want)
		}
	}
}

func TestPoolColumns(t *testing.T) {
	x := input{"x", []int{2, 4}, []float32{1, 2, 3, 4, 5, 6, 7, 8}}
	for _, c := range []struct {
		pointer int32
		n       int
		want    []float32
	}{
		{0, 2, []float32{1, 2, 5, 6}},
		{3, 2, []float32{4, 1, 8, 5}},
		{2, 4, []float32{3, 4, 1, 2, 7, 8, 5, 6}},
		{3, 1, []float32{4, 8}},
	} {
		got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return PoolColumns(ns[0], ns[1], c.n) }, x, i32s("pointer", []int32{c.pointer}))
		if !slices.Equal(got.F32, c.want) {
			t.Errorf("%d columns from %d: got %v, want %v", c.n, c.pointer, got.F32, c.want)
		}
	}
}

func TestPoolErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 2))
	in := []input{f32s(r, "f", 2, 3), f32s(r, "keys", 4, 3), f32s(r, "queue", 6, 3), i32s("pointer", []int32{6}),
		f32s(r, "narrow", 4, 2), f32s(r, "large", 7, 3), i32s("cols", []int32{7}), i32s("ids", make([]int32, 6), 6), f32s(r, "x", 2, 6)}
	_, ns := nodes(in)
	f, keys, queue, pointer, narrow, large, ids, x := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[7], ns[8]
	for _, c := range []struct {
		want  string
		build func() *gorgonia.Node
	}{
		{"want f (B, C)", func() *gorgonia.Node { return PoolSimilarity(ids, Pool{keys, queue, pointer, nil}) }},
		{"keys must have shape (B2, 3)", func() *gorgonia.Node { return PoolSimilarity(f, Pool{narrow, queue, pointer, nil}) }},
		{"queue must have shape (N, 3)", func() *gorgonia.Node { return PoolSimilarity(f, Pool{keys, ids, pointer, nil}) }},
		{"pointer must be a scalar", func() *gorgonia.Node { return PoolSimilarity(f, Pool{keys, queue, ids, nil}) }},
		{"cols must have shape ()", func() *gorgonia.Node { return PoolSimilarity(f, Pool{keys, queue, pointer, ids}) }},
		{"a batch of 7 rows does not fit into a queue of 6", func() *gorgonia.Node { return PoolSimilarity(f, Pool{large, queue, pointer, nil}) }},
		{"want x (B, N)", func() *gorgonia.Node { return PoolColumns(ids, pointer, 2) }},
		{"want between 1 and 6 columns (got 7)", func() *gorgonia.Node { return PoolColumns(x, pointer, 7) }},
		{"want between 1 and 6 columns (got 0)", func() *gorgonia.Node { return PoolColumns(x, pointer, 0) }},
		{"pointer must be a scalar", func() *gorgonia.Node { return PoolColumns(x, ids, 2) }},
	} {
		wantBuildError(t, c.want, c.want, func() { c.build() })
	}
	zero := i32s("pointer", []int32{0})
	for _, c := range []struct {
		want    string
		pointer input
		build   func(ns gorgonia.Nodes) *gorgonia.Node
	}{
		{"pointer is 6: want [0, 6)", in[3], func(ns gorgonia.Nodes) *gorgonia.Node { return PoolSimilarity(ns[0], Pool{ns[1], ns[2], ns[3], nil}) }},
		{"pointer is 6: want [0, 6)", in[3], func(ns gorgonia.Nodes) *gorgonia.Node { return PoolColumns(ns[8], ns[3], 2) }},
		{"cols is 7: want [0, 6]", zero, func(ns gorgonia.Nodes) *gorgonia.Node { return PoolSimilarity(ns[0], Pool{ns[1], ns[2], ns[3], ns[6]}) }},
	} {
		in[3] = c.pointer
		wantRunError(t, c.want, c.build, in...)
	}
}

// wantRunError fails unless a run of what build returns ends with an error that holds
// want.
func wantRunError(t *testing.T, want string, build func(ns gorgonia.Nodes) *gorgonia.Node, in ...input) {
	t.Helper()
	g, ns := nodes(in)
	if err := machine(t, g, ns, in, build(ns)).RunAll(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}
