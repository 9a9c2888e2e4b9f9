package pool

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

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
		in := []optest.Input{
			optest.In("f", []int{1, 1}, []float32{1}), optest.In("keys", []int{2, 1}, []float32{-1, -2}), optest.In("queue", []int{5, 1}, []float32{1, 2, 3, 4, 5}),
			optest.I32s("pointer", []int32{c.pointer}), optest.I32s("cols", []int32{c.cols}),
		}
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return Similarity(ns[0], Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3], Cols: ns[4]})
		}, in...).F32
		if !slices.Equal(got, c.want) {
			t.Errorf("pointer %d, cols %d: got %v, want %v", c.pointer, c.cols, got, c.want)
		}
	}
}

func TestColumns(t *testing.T) {
	x := optest.In("x", []int{2, 4}, []float32{1, 2, 3, 4, 5, 6, 7, 8})
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
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Columns(ns[0], ns[1], c.n) }, x, optest.I32s("pointer", []int32{c.pointer}))
		if !slices.Equal(got.F32, c.want) {
			t.Errorf("%d columns from %d: got %v, want %v", c.n, c.pointer, got.F32, c.want)
		}
	}
}

func TestPoolErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 2))
	in := []optest.Input{optest.F32s(r, "f", 2, 3), optest.F32s(r, "keys", 4, 3), optest.F32s(r, "queue", 6, 3), optest.I32s("pointer", []int32{6}),
		optest.F32s(r, "narrow", 4, 2), optest.F32s(r, "large", 7, 3), optest.I32s("cols", []int32{7}), optest.I32s("ids", make([]int32, 6), 6), optest.F32s(r, "x", 2, 6)}
	_, ns := optest.Nodes(in)
	f, keys, queue, pointer, narrow, large, ids, x := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[7], ns[8]
	for _, c := range []struct {
		want  string
		build func() *gorgonia.Node
	}{
		{"want f (B, C)", func() *gorgonia.Node { return Similarity(ids, Pool{keys, queue, pointer, nil}) }},
		{"keys must have shape (B2, 3)", func() *gorgonia.Node { return Similarity(f, Pool{narrow, queue, pointer, nil}) }},
		{"queue must have shape (N, 3)", func() *gorgonia.Node { return Similarity(f, Pool{keys, ids, pointer, nil}) }},
		{"pointer must be a scalar", func() *gorgonia.Node { return Similarity(f, Pool{keys, queue, ids, nil}) }},
		{"cols must have shape ()", func() *gorgonia.Node { return Similarity(f, Pool{keys, queue, pointer, ids}) }},
		{"a batch of 7 rows does not fit into a queue of 6", func() *gorgonia.Node { return Similarity(f, Pool{large, queue, pointer, nil}) }},
		{"want x (B, N)", func() *gorgonia.Node { return Columns(ids, pointer, 2) }},
		{"want between 1 and 6 columns (got 7)", func() *gorgonia.Node { return Columns(x, pointer, 7) }},
		{"want between 1 and 6 columns (got 0)", func() *gorgonia.Node { return Columns(x, pointer, 0) }},
		{"pointer must be a scalar", func() *gorgonia.Node { return Columns(x, ids, 2) }},
	} {
		optest.BuildError(t, c.want, c.want, func() { c.build() })
	}
	zero := optest.I32s("pointer", []int32{0})
	for _, c := range []struct {
		want    string
		pointer optest.Input
		build   func(ns gorgonia.Nodes) *gorgonia.Node
	}{
		{"pointer is 6: want [0, 6)", in[3], func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], Pool{ns[1], ns[2], ns[3], nil}) }},
		{"pointer is 6: want [0, 6)", in[3], func(ns gorgonia.Nodes) *gorgonia.Node { return Columns(ns[8], ns[3], 2) }},
		{"cols is 7: want [0, 6]", zero, func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], Pool{ns[1], ns[2], ns[3], ns[6]}) }},
	} {
		in[3] = c.pointer
		optest.RunError(t, c.want, c.build, in...)
	}
}
