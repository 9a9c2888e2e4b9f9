package layout

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestSequenceRows takes rows out of two sequences of three by hand.
func TestSequenceRows(t *testing.T) {
	x := optest.In("x", tensor.Shape{6, 2}, []float32{0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51})
	for name, c := range map[string]struct {
		build func(ns gorgonia.Nodes) *gorgonia.Node
		want  []float32
	}{
		"first two":      {func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRows(ns[0], 3, 0, 2) }, []float32{0, 1, 10, 11, 30, 31, 40, 41}},
		"last":           {func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRows(ns[0], 3, 2, 1) }, []float32{20, 21, 50, 51}},
		"without second": {func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRest(ns[0], 3, 1, 1) }, []float32{0, 1, 20, 21, 30, 31, 50, 51}},
		"without first":  {func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRest(ns[0], 3, 0, 2) }, []float32{20, 21, 50, 51}},
		"one sequence":   {func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRest(ns[0], 6, 1, 4) }, []float32{0, 1, 50, 51}},
	} {
		got := optest.Eval(t, c.build, x)
		optest.Near(t, name, got.F32, c.want, 0)
		if !got.Shape.Eq(tensor.Shape{len(c.want) / 2, 2}) {
			t.Errorf("%s: shape %v", name, got.Shape)
		}
	}
	y := optest.In("y", tensor.Shape{2, 2}, []float32{-1, -2, -3, -4})
	insert := func(at int) []float32 {
		return optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return InsertRows(ns[0], ns[1], 3, 1, at) }, x, y).F32
	}
	optest.Near(t, "inserted in front", insert(0), []float32{-1, -2, 0, 1, 10, 11, 20, 21, -3, -4, 30, 31, 40, 41, 50, 51}, 0)
	optest.Near(t, "inserted behind the first", insert(1), []float32{0, 1, -1, -2, 10, 11, 20, 21, 30, 31, -3, -4, 40, 41, 50, 51}, 0)
	optest.Near(t, "inserted behind all", insert(3), []float32{0, 1, 10, 11, 20, 21, -1, -2, 30, 31, 40, 41, 50, 51, -3, -4}, 0)
}

// TestSequencesByShape: of random sequences, what is inserted comes out again, the rest
// stays, each row is where a loop finds it, and gradients are those of finite differences,
// also where both parts are read (so that one gradient is added to the other).
func TestSequencesByShape(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	for range 25 {
		n, l, k, d := 1+r.IntN(40), 1+r.IntN(9), 1+r.IntN(5), 1+r.IntN(40)
		at := r.IntN(l + 1)
		x, y := optest.F32s(r, "x", n*l, d), optest.F32s(r, "y", n*k, d)
		insert := func(ns gorgonia.Nodes) *gorgonia.Node { return InsertRows(ns[0], ns[1], l, k, at) }
		got := optest.Eval(t, insert, x, y).F32
		for i := range n * (l + k) {
			s, p := i/(l+k), i%(l+k)
			from, row := x.Floats(), s*l+p
			switch {
			case p >= at+k:
				row -= k
			case p >= at:
				from, row = y.Floats(), s*k+p-at
			}
			if !slices.Equal(got[i*d:(i+1)*d], from[row*d:(row+1)*d]) {
				t.Fatalf("n=%d l=%d k=%d at=%d: row %d is wrong", n, l, k, at, i)
			}
		}
		optest.Near(t, "rows taken out", optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRows(insert(ns), l+k, at, k) }, x, y).F32, y.Floats(), 0)
		optest.Near(t, "rows left", optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRest(insert(ns), l+k, at, k) }, x, y).F32, x.Floats(), 0)
		optest.CheckGrad(t, insert, []int{0, 1}, 1e-2, 1e-3, x, y)
		both := func(ns gorgonia.Nodes) *gorgonia.Node {
			z := nn.GELU(insert(ns))
			return ConcatRows(SequenceRows(z, l+k, at, k), SequenceRest(z, l+k, at, k))
		}
		optest.CheckGrad(t, both, []int{0, 1}, 1e-2, 2e-3, x, y)
	}
}

// sequenceCases are rows of TestCases.
func sequenceCases() []optest.Case {
	r := rand.New(rand.NewPCG(63, 64))
	x, y := optest.F32s(r, "x", 40*30, 33), optest.F32s(r, "y", 40*5, 33)
	ids := optest.I32s("ids", optest.RandomInts(r, 40*30, 30), 40*30)
	z, ints := optest.F32s(r, "z", 120, 321), optest.I32s("z", optest.RandomInts(r, 50, 50), 50)
	return []optest.Case{
		{Name: "transpose", Inputs: []optest.Input{z}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Transpose(ns[0]) }},
		{Name: "concat columns", Inputs: []optest.Input{x, optest.F32s(r, "beside", 40*30, 5)}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatColumns(ns[0], ns[1]) }},
		{Name: "strided rows", Inputs: []optest.Input{z}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return StridedRows(ns[0], 1, 2, 60) }},
		{Name: "slice of rows", Inputs: []optest.Input{z}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return StridedRows(ns[0], 10, 1, 100) }},
		{Name: "gather ints", Inputs: []optest.Input{ints}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return GatherInts(ns[0], ns[0]) }},
		{Name: "concat ints", Inputs: []optest.Input{ids, ints}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatInts(ns...) }},
		{Name: "sequence rows", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRows(ns[0], 30, 2, 7) }},
		{Name: "sequence rest", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SequenceRest(ns[0], 30, 2, 7) }},
		{Name: "both parts of sequences", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			z := nn.GELU(ns[0])
			return ConcatRows(SequenceRows(z, 30, 1, 7), SequenceRest(z, 30, 1, 7))
		}},
		{Name: "insert rows", Inputs: []optest.Input{x, y}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return InsertRows(ns[0], ns[1], 30, 5, 1) }},
		{Name: "concat rows", Inputs: []optest.Input{x, y}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatRows(ns[0], ns[1]) }},
		{Name: "reshape", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Reshape(nn.L2Normalize(Reshape(ns[0], 1200*3, 11), 1e-12), 1200, 33)
		}},
		{Name: "repeat first", Inputs: []optest.Input{ids}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return RepeatFirst(ns[0], 30, 5) }},
		{Name: "add int", Inputs: []optest.Input{ids}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddInt(ns[0], 5) }},
		{Name: "at least int", Inputs: []optest.Input{ids}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return AtLeastInt(ns[0], 5) }},
	}
}

// sequenceVariants are groups of TestHash, for a matrix (12, 12) and 12 ids.
func sequenceVariants(m, ids *gorgonia.Node) map[string][]func() *gorgonia.Node {
	back := func(p sequencePart) func() *gorgonia.Node {
		return func() *gorgonia.Node { return op.Apply(p.backward(), m) }
	}
	return map[string][]func() *gorgonia.Node{
		"sequence rows": {
			func() *gorgonia.Node { return SequenceRows(m, 4, 0, 2) },
			func() *gorgonia.Node { return SequenceRows(m, 4, 1, 2) },
			func() *gorgonia.Node { return SequenceRows(m, 4, 0, 1) },
			func() *gorgonia.Node { return SequenceRows(m, 3, 0, 2) },
			func() *gorgonia.Node { return SequenceRest(m, 4, 0, 2) },
		},
		"sequence rows dx": {
			back(sequencePart{t: 4, n: 2}), back(sequencePart{t: 4, from: 1, n: 2}), back(sequencePart{t: 5, n: 2}),
			back(sequencePart{t: 4, n: 1}), back(sequencePart{t: 4, n: 2, rest: true}),
		},
		"insert rows": {
			func() *gorgonia.Node { return InsertRows(m, m, 4, 4, 0) },
			func() *gorgonia.Node { return InsertRows(m, m, 4, 4, 1) },
			func() *gorgonia.Node { return InsertRows(m, m, 3, 3, 0) },
		},
		"reshape": {
			func() *gorgonia.Node { return Reshape(m, 6, 24) },
			func() *gorgonia.Node { return Reshape(m, 24, 6) },
		},
		"repeat first": {
			func() *gorgonia.Node { return RepeatFirst(ids, 4, 1) },
			func() *gorgonia.Node { return RepeatFirst(ids, 4, 2) },
			func() *gorgonia.Node { return RepeatFirst(ids, 3, 1) },
		},
		"at least int": {func() *gorgonia.Node { return AtLeastInt(ids, 1) }, func() *gorgonia.Node { return AtLeastInt(ids, 2) }},
		"add int":      {func() *gorgonia.Node { return AddInt(ids, 1) }, func() *gorgonia.Node { return AddInt(ids, 2) }},
	}
}

func TestSequenceErrors(t *testing.T) {
	_, ns := optest.Nodes([]optest.Input{optest.F32s(rand.New(rand.NewPCG(1, 2)), "m", 12, 5), optest.F32s(rand.New(rand.NewPCG(1, 2)), "w", 12, 6), optest.I32s("i", make([]int32, 12), 12)})
	m, wide, ids := ns[0], ns[1], ns[2]
	for name, build := range map[string]func(){
		"rows beyond the end":       func() { SequenceRows(m, 4, 3, 2) },
		"rows before the start":     func() { SequenceRows(m, 4, -1, 2) },
		"no rows":                   func() { SequenceRows(m, 4, 0, 0) },
		"nothing left":              func() { SequenceRest(m, 4, 0, 4) },
		"sequences do not divide":   func() { SequenceRows(m, 5, 0, 1) },
		"vector":                    func() { SequenceRows(ids, 4, 0, 1) },
		"other width":               func() { InsertRows(m, wide, 4, 4, 0) },
		"other number of sequences": func() { InsertRows(m, m, 4, 3, 0) },
		"place outside":             func() { InsertRows(m, m, 4, 4, 5) },
		"sequences of nothing":      func() { InsertRows(m, m, 4, 0, 0) },
		"concat other width":        func() { ConcatRows(m, wide) },
		"reshape to another size":   func() { Reshape(m, 12, 4) },
		"repeat in broken texts":    func() { RepeatFirst(ids, 5, 1) },
		"repeat a matrix":           func() { RepeatFirst(m, 5, 1) },
		"add to a matrix":           func() { AddInt(m, 1) },
		"least of a matrix":         func() { AtLeastInt(m, 1) },
	} {
		optest.BuildError(t, name, "", build)
	}
}
