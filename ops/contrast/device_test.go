package contrast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

func TestCUDA(t *testing.T) {
	d := cudatest.Open(t)
	var cases []optest.Case
	for _, more := range [][]optest.Case{lossCases(), crossEntropyCases(false), negativeCases(), scoreCases(), sigmoidDeviceCases(), otherCases()} {
		cases = append(cases, more...)
	}
	if !cudatest.Emulated(d) {
		cases = append(cases, crossEntropyCases(true)...)
	}
	optest.CheckCUDA(t, cases, "concat ints", "gather ints")
}

// some returns n random numbers in [-below/4, below), each three-quarters of the time in [0, below).
func some(r *rand.Rand, n, below int) []int32 {
	x := optest.RandomInts(r, n, below)
	for i := range x {
		if r.IntN(4) == 0 {
			x[i] = -1 - int32(r.IntN(3))
		}
	}
	return x
}

// crossEntropyCases are all kinds of targets, in the sizes of a block and of a warp for each row, or large: as wide as those of a model.
func crossEntropyCases(large bool) (cases []optest.Case) {
	r := rand.New(rand.NewPCG(42, 1))
	sizes, prefix := [][2]int{{1, 1}, {7, 2}, {13, 37}, {5, 256}, {6, 257}, {4, 1027}, {3, 5002}}, ""
	if large {
		sizes, prefix = [][2]int{{32, 30522}, {12, 65536 + 256}, {256, 256}, {1 << 15, 2}}, "large "
	}
	for _, size := range sizes {
		rows, cols := size[0], size[1]
		existing := cols - cols/5
		logits, teacher := optest.F32s(r, "logits", rows, cols), optest.F32s(r, "teacher", rows, cols)
		for i := range logits.Floats() {
			logits.Floats()[i] *= 20
			teacher.Floats()[i] *= 10
		}
		for _, kind := range []string{"labels", "ids"} {
			for bits := range 16 {
				if large && bits != 1 && bits != 15 {
					continue
				}
				in, a := []optest.Input{logits}, make([]func(a *CrossEntropyArgs, n *gorgonia.Node), 1)
				add := func(x optest.Input, set func(a *CrossEntropyArgs, n *gorgonia.Node)) {
					in, a = append(in, x), append(a, set)
				}
				if kind == "labels" {
					add(optest.I32s("labels", some(r, rows, existing), rows), func(a *CrossEntropyArgs, n *gorgonia.Node) { a.Labels = n })
				} else {
					add(optest.I32s("row ids", some(r, rows, max(1, cols/3)), rows), func(a *CrossEntropyArgs, n *gorgonia.Node) { a.RowIDs = n })
					add(optest.I32s("column ids", some(r, cols, max(1, cols/3)), cols), func(a *CrossEntropyArgs, n *gorgonia.Node) { a.ColIDs = n })
				}
				if bits&1 != 0 {
					add(teacher, func(a *CrossEntropyArgs, n *gorgonia.Node) { a.Teacher = n })
					add(optest.In("alpha", nil, []float32{.4}), func(a *CrossEntropyArgs, n *gorgonia.Node) { a.Alpha = n })
				}
				if bits&2 != 0 {
					add(optest.I32s("cols", []int32{int32(existing)}), func(a *CrossEntropyArgs, n *gorgonia.Node) { a.Cols = n })
				}
				if bits&4 != 0 {
					add(optest.I32s("extra", some(r, rows, existing), rows), func(a *CrossEntropyArgs, n *gorgonia.Node) { a.Extra = n })
				}
				if bits&8 != 0 {
					add(optest.In("uniform", nil, []float32{.1}), func(a *CrossEntropyArgs, n *gorgonia.Node) { a.Uniform = n })
				}
				for _, mean := range []bool{true, false} {
					cases = append(cases, optest.Case{
						Name: fmt.Sprintf("%scross entropy of %d x %d by %s, %04b, mean %t", prefix, rows, cols, kind, bits, mean), Inputs: in, WRT: []int{0},
						Build: func(ns gorgonia.Nodes) *gorgonia.Node {
							args := CrossEntropyArgs{Logits: ns[0]}
							for i, set := range a[1:] {
								set(&args, ns[i+1])
							}
							if mean {
								return CrossEntropy(args)
							}
							return CrossEntropyRows(args)
						},
					})
				}
			}
		}
	}
	return cases
}

// negativeCases draw from batches of several sizes, with logits that are not finite too.
func negativeCases() (cases []optest.Case) {
	r := rand.New(rand.NewPCG(42, 2))
	for _, b := range []int{2, 5, 33, 100} {
		logits, noise := optest.F32s(r, "logits", b, b+3), optest.F32s(r, "noise", b, b)
		odd := optest.F32s(r, "odd logits", b, b)
		for i := range logits.Floats() {
			logits.Floats()[i] *= 30
		}
		for i := range b {
			x := odd.Floats()[i*b:][:b]
			switch i % 5 {
			case 1:
				x[r.IntN(b)] = float32(math.NaN())
			case 2:
				x[r.IntN(b)] = float32(math.Inf(1))
			case 3:
				x[r.IntN(b)] = float32(math.Inf(-1))
			case 4:
				for j := range x {
					x[j] = float32(math.Inf(-1))
				}
			}
		}
		ids := optest.I32s("ids", optest.RandomInts(r, b, b/3+1), b)
		ones := optest.I32s("one id", make([]int32, b), b)
		add := func(name string, build func(ns gorgonia.Nodes) *gorgonia.Node, in ...optest.Input) {
			cases = append(cases, optest.Case{Name: fmt.Sprintf("%s of %d", name, b), Inputs: in, Build: build})
		}
		for _, floor := range []float64{0, 1e-4} {
			add(fmt.Sprintf("negatives, floor %v", floor), func(ns gorgonia.Nodes) *gorgonia.Node {
				x := SampleNegatives(ns[0], ns[1], ns[2], false, floor)
				return layout.ConcatInts(x, SampleNegatives(ns[0], ns[1], nil, true, floor), SampleNegatives(ns[3], ns[1], nil, false, floor),
					SampleNegatives(ns[3], ns[1], ns[2], true, floor), SampleNegatives(ns[3], ns[1], ns[4], true, floor), NegativeLabels(x))
			}, logits, noise, ids, odd, ones)
		}
		add("pairs", func(ns gorgonia.Nodes) *gorgonia.Node {
			return layout.ConcatInts(SamplePairs(ns[0], ns[1], ns[2]), SamplePairs(ns[0], ns[1], nil), SamplePairs(ns[0], ns[1], ns[3]))
		}, odd, noise, ids, ones)
		columns := optest.I32s("columns", some(r, b, 50), b)
		add("hardest", func(ns gorgonia.Nodes) *gorgonia.Node {
			a, c := HardestNegatives(ns[0], ns[1])
			d, e := HardestNegatives(ns[2], nil)
			f, g := HardestNegatives(ns[2], ns[3])
			return layout.ConcatInts(a, c, d, e, f, g, LookUpColumns(ns[4], a))
		}, logits, ids, odd, ones, columns)
		own := optest.I32s("own", optest.RandomInts(r, b, b), b)
		add("relabel", func(ns gorgonia.Nodes) *gorgonia.Node {
			x := Relabel(ns[0], ns[1], ns[2], .6, .4)
			return layout.ConcatInts(x.Index, x.Labels, x.Positive, NegativeLabelsOf(x.Index, ns[0]))
		}, own, optest.I32s("second", optest.RandomInts(r, b, b), b), optest.F32s(r, "two", b, 2))
		add("relabelled", func(ns gorgonia.Nodes) *gorgonia.Node { return Relabel(ns[0], ns[1], ns[2], .6, .4).Positives }, own, own, optest.F32s(r, "two", b, 2))
		add("replaced", func(ns gorgonia.Nodes) *gorgonia.Node { return Relabel(ns[0], ns[1], ns[2], .6, .4).Replaced }, own, own, optest.F32s(r, "two", b, 2))
		add("accuracy", func(ns gorgonia.Nodes) *gorgonia.Node { return Accuracy(ns[0], ns[1]) },
			odd, optest.I32s("labels", some(r, b, b), b))
		add("label share", func(ns gorgonia.Nodes) *gorgonia.Node { return LabelShare(ns[0], ns[1]) },
			optest.I32s("mine", some(r, b, b), b), optest.I32s("all", some(r, 3*b, b), 3*b))
	}
	return cases
}

// scoreCases are the losses of square scores.
func scoreCases() (cases []optest.Case) {
	r := rand.New(rand.NewPCG(42, 3))
	for _, b := range []int{1, 2, 31, 140} {
		s, ids := optest.F32s(r, "s", b, b), optest.I32s("ids", optest.RandomInts(r, b, b/3+1), b)
		add := func(name string, build func(ns gorgonia.Nodes) *gorgonia.Node, wrt []int, in ...optest.Input) {
			cases = append(cases, optest.Case{Name: fmt.Sprintf("%s of %d", name, b), Inputs: in, WRT: wrt, Build: build})
		}
		for _, hardest := range []float32{0, 1} {
			h := optest.In("hardest", nil, []float32{hardest})
			add(fmt.Sprintf("hinge, hardest %v", hardest), func(ns gorgonia.Nodes) *gorgonia.Node { return Hinge(ns[0], ns[1], ns[2], .2) }, []int{0}, s, ids, h)
			add(fmt.Sprintf("hinge without ids, hardest %v", hardest), func(ns gorgonia.Nodes) *gorgonia.Node { return Hinge(ns[0], nil, ns[1], .2) }, []int{0}, s, h)
		}
		add("poly", func(ns gorgonia.Nodes) *gorgonia.Node { return Poly(ns[0], ns[1], .2) }, []int{0}, s, ids)
		for _, scale := range []float64{3, -2} {
			add(fmt.Sprintf("cmpm, scale %v", scale), func(ns gorgonia.Nodes) *gorgonia.Node { return CMPM(ns[0], ns[1], scale) }, []int{0}, s, ids)
		}
		for _, x := range []Triplets{{Hardest: true, Margin: .3}, {Margin: .3}, {Hardest: true, Soft: true}, {Soft: true}} {
			add("triplet "+x.args(), func(ns gorgonia.Nodes) *gorgonia.Node { return Triplet(ns[0], ns[1], x) }, []int{0}, s, ids)
		}
		add("triplet anchors", func(ns gorgonia.Nodes) *gorgonia.Node { return TripletAnchors(ns[0]) }, nil, ids)
		add("worst", func(ns gorgonia.Nodes) *gorgonia.Node { return Worst(ns[0], ns[1]) }, []int{0, 1}, s, optest.F32s(r, "t", b, b))
		w := optest.F32s(r, "weights", b)
		add("margin", func(ns gorgonia.Nodes) *gorgonia.Node { return Margin(ns[0], ns[1], ns[2], .2) }, []int{0, 1}, optest.F32s(r, "p", b), optest.F32s(r, "n", b), w)
	}
	return cases
}

// sigmoidDeviceCases are the sigmoid loss with both kinds of positives.
func sigmoidDeviceCases() (cases []optest.Case) {
	r := rand.New(rand.NewPCG(42, 4))
	scale, bias := optest.In("scale", nil, []float32{1.2}), optest.In("bias", nil, []float32{-3})
	for _, size := range [][2]int{{1, 1}, {5, 7}, {9, 300}, {3, 5000}} {
		rows, cols := size[0], size[1]
		existing := optest.I32s("cols", []int32{int32(cols - cols/5)})
		s := optest.F32s(r, "s", rows, cols)
		cases = append(cases, optest.Case{Name: fmt.Sprintf("sigmoid by labels of %d x %d", rows, cols), WRT: []int{0, 1, 2},
			Inputs: []optest.Input{s, scale, bias, optest.I32s("labels", some(r, rows, cols-cols/5), rows), existing},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SigmoidContrast(SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[2], Labels: ns[3], Cols: ns[4]})
			}}, optest.Case{Name: fmt.Sprintf("sigmoid by ids of %d x %d", rows, cols), WRT: []int{0, 1, 2},
			Inputs: []optest.Input{s, scale, bias, optest.I32s("rows", some(r, rows, cols/3+1), rows), optest.I32s("columns", some(r, cols, cols/3+1), cols)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SigmoidContrast(SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[2], RowIDs: ns[3], ColIDs: ns[4]})
			}})
	}
	return cases
}

// otherCases are local contrast, pooling and balanced codes.
func otherCases() []optest.Case {
	r := rand.New(rand.NewPCG(42, 5))
	const b, p = 11, 9
	logits := optest.F32s(r, "logits", b, b*p)
	lengths, ids := optest.I32s("lengths", optest.RandomInts(r, b, p+3), b), optest.I32s("ids", optest.RandomInts(r, b, 5), b)
	scores, queue, rows := optest.F32s(r, "scores", 12, 70), optest.F32s(r, "queue", 40, 70), optest.I32s("rows", []int32{33})
	return []optest.Case{
		{Name: "local", Inputs: []optest.Input{logits}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LocalContrast(LocalArgs{Logits: ns[0]}) }},
		{Name: "local of lengths", Inputs: []optest.Input{logits, lengths, ids}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return LocalContrast(LocalArgs{Logits: ns[0], Lengths: ns[1], IDs: ns[2], First: 1})
			}},
		{Name: "local of one", Inputs: []optest.Input{optest.F32s(r, "one", 1, p)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LocalContrast(LocalArgs{Logits: ns[0]}) }},
		{Name: "pool patches", Inputs: []optest.Input{optest.F32s(r, "x", 3*37, 13)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return PoolPatches(ns[0], 37, 6, 3) }},
		{Name: "codes", Inputs: []optest.Input{scores}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Sinkhorn(SinkhornArgs{Scores: ns[0], Epsilon: .05, Iterations: 3})
		}},
		{Name: "codes with a queue", Inputs: []optest.Input{scores, queue, rows}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Sinkhorn(SinkhornArgs{Scores: ns[0], Queue: ns[1], Rows: ns[2], Epsilon: .05, Iterations: 3})
		}},
	}
}

// TestCUDABroken: what the host's steps report as errors is NaN on the device, or the index -1, and nothing beyond the arrays is read.
func TestCUDABroken(t *testing.T) {
	d := cudatest.Open(t)
	r := rand.New(rand.NewPCG(42, 6))
	s, labels := optest.F32s(r, "s", 2, 5), optest.I32s("labels", []int32{1, 1 << 30}, 2)
	good, columns := optest.I32s("good", []int32{1, 2}, 2), optest.I32s("columns", []int32{1, 2, 1, 2, 3}, 5)
	scale, none := optest.In("scale", nil, []float32{1}), optest.I32s("none", []int32{0})
	nan := func(a exec.Array) bool { return a.F32[0] != a.F32[0] }
	index := func(a exec.Array) bool { return a.I32[0] == 2 && a.I32[1] == -1 }
	for name, c := range map[string]struct {
		in    []optest.Input
		want  func(a exec.Array) bool
		build func(ns gorgonia.Nodes) *gorgonia.Node
	}{
		"label": {[]optest.Input{s, labels}, nan, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1]})
		}},
		"extra": {[]optest.Input{s, good, columns, labels}, nan, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], RowIDs: ns[1], ColIDs: ns[2], Extra: ns[3]})
		}},
		"columns": {[]optest.Input{s, good, none}, nan, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1], Cols: ns[2]})
		}},
		"gradient": {[]optest.Input{s, labels}, func(a exec.Array) bool { return a.F32[0] == a.F32[0] && a.F32[5] != a.F32[5] },
			func(ns gorgonia.Nodes) *gorgonia.Node {
				grads, err := gorgonia.Grad(CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1]}), ns[0])
				if err != nil {
					t.Fatal(err)
				}
				return grads[0]
			}},
		"sigmoid": {[]optest.Input{s, scale, labels}, nan, func(ns gorgonia.Nodes) *gorgonia.Node {
			return SigmoidContrast(SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[1], Labels: ns[2]})
		}},
		"look up": {[]optest.Input{columns, labels}, index, func(ns gorgonia.Nodes) *gorgonia.Node { return LookUpColumns(ns[0], ns[1]) }},
		"own": {[]optest.Input{optest.In("even", []int{2, 3}, make([]float32, 6)), optest.In("noise", []int{2, 3}, []float32{0, 0, 1, 0, 0, 0}), labels}, index,
			func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegativesOf(ns[0], ns[1], nil, ns[2], 0) }},
	} {
		g, ns := optest.Nodes(c.in)
		out := c.build(ns)
		m := check.Get(exec.Compile(g, exec.Config{Engine: optest.Engine, Device: d, Outputs: gorgonia.Nodes{out}}))(t)
		defer m.Close()
		for i, in := range c.in {
			check.OK(t, m.SetInput(ns[i], in.Data))
		}
		if err := m.RunAll(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if a, err := m.Value(out); err != nil || !c.want(a) {
			t.Errorf("%s: got %v %v, %v", name, a.F32, a.I32, err)
		}
	}
}
