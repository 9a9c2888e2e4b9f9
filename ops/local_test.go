package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestLocalGolden compares loss, pooling and their gradients with torch's, from
// tools/goldens/tcl.py.
func TestLocalGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	builds := map[string]func(g get) *gorgonia.Node{
		"image parts": func(g get) *gorgonia.Node { return LocalContrast(LocalArgs{Logits: g("logits")}) },
		"tokens of texts": func(g get) *gorgonia.Node {
			return LocalContrast(LocalArgs{Logits: g("logits"), Lengths: g("lengths"), First: 1})
		},
		"pool 4x4 into 2x2": func(g get) *gorgonia.Node { return PoolPatches(g("x"), 17, 4, 2) },
		"pool 6x6 into 3x3": func(g get) *gorgonia.Node { return PoolPatches(g("x"), 37, 6, 3) },
		"pool 2x2 into 1":   func(g get) *gorgonia.Node { return PoolPatches(g("x"), 5, 2, 1) },
	}
	cases := torchCases(t, "local.json")
	if len(cases) != len(builds) {
		t.Errorf("%d cases, %d of them are tested", len(cases), len(builds))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"x": "dx"}
			if _, ok := c["logits"]; ok {
				want = map[string]string{"logits": "dlogits"}
			}
			c.check(t, 2e-6, builds[name], want)
		})
	}
}

// localCase is a local contrast of b samples with p parts.
type localCase struct {
	b, p, first  int
	logits       []float32
	lengths, ids []int32 // or nil
}

func (l *localCase) inputs() []input {
	in := []input{{"logits", []int{l.b, l.b * l.p}, l.logits}}
	if l.lengths != nil {
		in = append(in, i32s("lengths", l.lengths, l.b))
	}
	if l.ids != nil {
		in = append(in, i32s("ids", l.ids, l.b))
	}
	return in
}

func (l *localCase) build(ns gorgonia.Nodes) *gorgonia.Node {
	a := LocalArgs{Logits: ns[0], First: l.first}
	ns = ns[1:]
	if l.lengths != nil {
		a.Lengths, ns = ns[0], ns[1:]
	}
	if l.ids != nil {
		a.IDs = ns[0]
	}
	return LocalContrast(a)
}

// naive is the definition, a softmax for every part.
func (l *localCase) naive() (loss float64, grad []float32) {
	exists := func(j, q int) bool { return q >= l.first && (l.lengths == nil || q < int(l.lengths[j])) }
	g := make([]float64, len(l.logits))
	rows := 0
	for i := range l.b {
		n := 0
		for q := range l.p {
			if exists(i, q) {
				n++
			}
		}
		if n == 0 {
			continue
		}
		rows++
		for p := range l.p {
			if !exists(i, p) {
				continue
			}
			at := []int{i*l.p + p} // columns of the softmax, the positive first
			for j := range l.b {
				for q := range l.p {
					if j != i && exists(j, q) && (l.ids == nil || l.ids[i] != l.ids[j]) {
						at = append(at, j*l.p+q)
					}
				}
			}
			s := make([]float32, len(at))
			for k, c := range at {
				s[k] = l.logits[i*l.b*l.p+c]
			}
			prob := softmax64(s)
			loss -= math.Log(prob[0]) / float64(n)
			prob[0]--
			for k, c := range at {
				g[i*l.b*l.p+c] += prob[k] / float64(n)
			}
		}
	}
	grad = make([]float32, len(g))
	for i, v := range g {
		grad[i] = float32(v / float64(max(1, rows)))
	}
	return loss / float64(max(1, rows)), grad
}

// TestLocalContrastFuzz compares random problems with the definition and with finite
// differences, with samples that share an id, have no parts or no negatives.
func TestLocalContrastFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for i := range 80 {
		l := &localCase{b: 1 + r.IntN(6), p: 1 + r.IntN(7)}
		l.logits = f32s(r, "", l.b, l.b*l.p).floats()
		for k := range l.logits {
			l.logits[k] *= 6
		}
		if i&1 != 0 {
			l.lengths = make([]int32, l.b)
			for j := range l.lengths {
				l.lengths[j] = int32(r.IntN(l.p + 2)) // one more than there are parts, too
			}
		}
		if i&2 != 0 {
			l.ids = randomInts(r, l.b, 3)
		}
		if i&4 != 0 {
			l.first = r.IntN(l.p)
		}
		loss, grad := l.naive()
		near(t, "loss", eval(t, l.build, l.inputs()...).F32, []float32{float32(loss)}, 1e-5)
		grads, _ := gradients(t, l.build, []int{0}, l.inputs()...)
		near(t, "gradient", grads[0], grad, 2e-5)
		if i%8 == 0 {
			checkGrad(t, l.build, []int{0}, 1e-2, 1e-2, l.inputs()...)
		}
	}
}

// TestLocalContrastSteep: logits of +-1e4, as at a tiny temperature, neither overflow nor
// lose the loss.
func TestLocalContrastSteep(t *testing.T) {
	l := &localCase{b: 2, p: 2, logits: []float32{1e4, -1e4, -1e4, 9e3, -1e4, 5, -1e4, 1e4}}
	// Row 0: parts 1e4 and -1e4 against max 9e3; row 1: parts -1e4 and 1e4 against max 5.
	want := (19000./2 + 10005./2) / 2
	near(t, "loss", eval(t, l.build, l.inputs()...).F32, []float32{float32(want)}, 1e-6)
	grads, _ := gradients(t, l.build, []int{0}, l.inputs()...)
	near(t, "gradient", grads[0], []float32{0, -.25, 0, .25, 0, .25, -.25, 0}, 1e-6)
}

// TestPoolPatchesNaive compares with loops over pixels of random sizes.
func TestPoolPatchesNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	for range 20 {
		grid, cell, n, c, extra := 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(9), r.IntN(3)
		side := grid * cell
		tokens := extra + side*side
		x := f32s(r, "x", n*tokens, c)
		want := make([]float32, n*grid*grid*c)
		for i := range n {
			for y := range side {
				for z := range side {
					for k := range c {
						q := y/cell*grid + z/cell
						want[(i*grid*grid+q)*c+k] += x.floats()[(i*tokens+extra+y*side+z)*c+k] / float32(cell*cell)
					}
				}
			}
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return PoolPatches(ns[0], tokens, side, grid) }
		near(t, "pooled", eval(t, build, x).F32, want, 1e-6)
		checkGrad(t, build, []int{0}, 1e-1, 1e-3, x)
	}
}

func TestLocalErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	_, ns := nodes([]input{f32s(r, "x", 2, 6), f32s(r, "y", 3, 8), i32s("ints", make([]int32, 3), 3), f32s(r, "z", 5, 2)})
	for _, c := range []struct {
		want  string
		build func()
	}{
		{"want logits", func() { LocalContrast(LocalArgs{Logits: ns[1]}) }},
		{"want logits", func() { LocalContrast(LocalArgs{Logits: ns[2]}) }},
		{"lengths must have shape (2)", func() { LocalContrast(LocalArgs{Logits: ns[0], Lengths: ns[2]}) }},
		{"ids must have shape (2)", func() { LocalContrast(LocalArgs{Logits: ns[0], IDs: ns[2]}) }},
		{"first part must be in [0, 3)", func() { LocalContrast(LocalArgs{Logits: ns[0], First: 3}) }},
		{"does not divide", func() { PoolPatches(ns[3], 5, 2, 3) }},
		{"hold no 9 patches", func() { PoolPatches(ns[3], 5, 3, 3) }},
		{"no multiple of 2 tokens", func() { PoolPatches(ns[3], 2, 1, 1) }},
		{"want x", func() { PoolPatches(ns[2], 5, 2, 1) }},
	} {
		wantBuildError(t, c.want, c.want, c.build)
	}
}

// hostCases are rows of opCases.
func hostCases() []opCase {
	r := rand.New(rand.NewPCG(45, 46))
	lengths, ids := i32s("lengths", randomInts(r, 40, 21), 40), i32s("ids", randomInts(r, 40, 30), 40)
	return []opCase{
		{name: "pool patches", inputs: []input{f32s(r, "x", 12*65, 33)}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return PoolPatches(ns[0], 65, 8, 4) }},
		{name: "local contrast", inputs: []input{f32s(r, "s", 40, 40*20), lengths, ids}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return LocalContrast(LocalArgs{Logits: ns[0], Lengths: ns[1], IDs: ns[2], First: 1})
			}},
		{name: "hardest negatives", inputs: []input{f32s(r, "s", 40, 90), ids},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				first, second := HardestNegatives(ns[0], ns[1])
				return ConcatInts(first, second)
			}},
		{name: "relabel", inputs: []input{i32s("first", randomInts(r, 40, 40), 40), i32s("second", randomInts(r, 40, 40), 40), f32s(r, "logits", 40, 2)},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				x := Relabel(ns[0], ns[1], ns[2], .7, .3)
				return ConcatInts(x.Index, x.Labels, x.Positive)
			}},
		{name: "cross entropy with further positives and a uniform share", wrt: []int{0},
			inputs: []input{f32s(r, "x", 5, 9000), i32s("labels", []int32{7, -1, 8999, 4096, 0}, 5), i32s("extra", []int32{8, 3, -1, 4096, 8000}, 5), {"uniform", nil, []float32{.5}}},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1], Extra: ns[2], Uniform: ns[3]})
			}},
	}
}

// TestHostHashes: variants that differ in one argument are different nodes.
func TestHostHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	_, ns := nodes([]input{f32s(r, "x", 6, 36), i32s("a", make([]int32, 6), 6), f32s(r, "two", 6, 2), {"s", nil, []float32{0}}})
	x, a, two, s := ns[0], ns[1], ns[2], ns[3]
	of := func(o *op, in ...*gorgonia.Node) func() *gorgonia.Node {
		return func() *gorgonia.Node { return apply(o, in...) }
	}
	for name, group := range map[string][]func() *gorgonia.Node{
		"pool": {
			func() *gorgonia.Node { return PoolPatches(x, 6, 2, 1) }, func() *gorgonia.Node { return PoolPatches(x, 6, 2, 2) },
			func() *gorgonia.Node { return PoolPatches(x, 6, 1, 1) }, func() *gorgonia.Node { return PoolPatches(x, 3, 1, 1) },
		},
		"pool dx": {of(patchPool{6, 2, 1}.backward(tensor.Shape{36, 36}), x), of(patchPool{6, 2, 1}.backward(tensor.Shape{36, 36, 1}), x)},
		"local": {
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, First: 1}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, Lengths: a}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, IDs: a}) },
			func() *gorgonia.Node { return LocalContrast(LocalArgs{Logits: x, Lengths: a, IDs: a}) },
		},
		"hardest": {
			func() *gorgonia.Node { n, _ := HardestNegatives(x, nil); return n }, func() *gorgonia.Node { n, _ := HardestNegatives(x, a); return n },
			func() *gorgonia.Node { _, n := HardestNegatives(x, nil); return n },
		},
		"relabel": {
			func() *gorgonia.Node { return Relabel(a, a, two, .8, .5).Index }, func() *gorgonia.Node { return Relabel(a, a, two, .8, .4).Index },
			func() *gorgonia.Node { return Relabel(a, a, two, .9, .5).Index }, func() *gorgonia.Node { return Relabel(a, a, two, .8, .5).Labels },
			func() *gorgonia.Node { return Relabel(a, a, two, .8, .5).Positive },
		},
		"cross entropy": {
			of((&crossEntropy{labels: 1, teacher: -1, alpha: -1, rowIDs: -1, colIDs: -1, cols: -1, extra: -1, uniform: -1, operands: 2}).forward(), x, a),
			func() *gorgonia.Node { return crossEntropyRows(CrossEntropyArgs{Logits: x, Labels: a, Extra: a}) },
			func() *gorgonia.Node { return crossEntropyRows(CrossEntropyArgs{Logits: x, Labels: a, Uniform: s}) },
		},
	} {
		for i, build := range group {
			n := build()
			if build() != n {
				t.Errorf("%s: variant %d built twice is two nodes", name, i)
			}
			for j, other := range group[:i] {
				if o := other(); o == n || o.Op().Hashcode() == n.Op().Hashcode() {
					t.Errorf("%s: variants %d and %d are one node or have one hash", name, i, j)
				}
			}
		}
	}
}
