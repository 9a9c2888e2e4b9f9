package contrast

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
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
	cases := optest.TorchCases(t, "local.json")
	if len(cases) != len(builds) {
		t.Errorf("%d cases, %d of them are tested", len(cases), len(builds))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"x": "dx"}
			if _, ok := c["logits"]; ok {
				want = map[string]string{"logits": "dlogits"}
			}
			c.Check(t, 2e-6, builds[name], want)
		})
	}
}

// localCase is a local contrast of b samples with p parts.
type localCase struct {
	b, p, first  int
	logits       []float32
	lengths, ids []int32 // or nil
}

func (l *localCase) inputs() []optest.Input {
	in := []optest.Input{optest.In("logits", []int{l.b, l.b * l.p}, l.logits)}
	if l.lengths != nil {
		in = append(in, optest.I32s("lengths", l.lengths, l.b))
	}
	if l.ids != nil {
		in = append(in, optest.I32s("ids", l.ids, l.b))
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
		l.logits = optest.F32s(r, "", l.b, l.b*l.p).Floats()
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
			l.ids = optest.RandomInts(r, l.b, 3)
		}
		if i&4 != 0 {
			l.first = r.IntN(l.p)
		}
		loss, grad := l.naive()
		optest.Near(t, "loss", optest.Eval(t, l.build, l.inputs()...).F32, []float32{float32(loss)}, 1e-5)
		grads, _ := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
		optest.Near(t, "gradient", grads[0], grad, 2e-5)
		if i%8 == 0 {
			optest.CheckGrad(t, l.build, []int{0}, 1e-2, 1e-2, l.inputs()...)
		}
	}
}

// TestLocalContrastSteep: logits of +-1e4, as at a tiny temperature, neither overflow nor
// lose the loss.
func TestLocalContrastSteep(t *testing.T) {
	l := &localCase{b: 2, p: 2, logits: []float32{1e4, -1e4, -1e4, 9e3, -1e4, 5, -1e4, 1e4}}
	// Row 0: parts 1e4 and -1e4 against max 9e3; row 1: parts -1e4 and 1e4 against max 5.
	want := (19000./2 + 10005./2) / 2
	optest.Near(t, "loss", optest.Eval(t, l.build, l.inputs()...).F32, []float32{float32(want)}, 1e-6)
	grads, _ := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
	optest.Near(t, "gradient", grads[0], []float32{0, -.25, 0, .25, 0, .25, -.25, 0}, 1e-6)
}

// TestPoolPatchesNaive compares with loops over pixels of random sizes.
func TestPoolPatchesNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	for range 20 {
		grid, cell, n, c, extra := 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(9), r.IntN(3)
		side := grid * cell
		tokens := extra + side*side
		x := optest.F32s(r, "x", n*tokens, c)
		want := make([]float32, n*grid*grid*c)
		for i := range n {
			for y := range side {
				for z := range side {
					for k := range c {
						q := y/cell*grid + z/cell
						want[(i*grid*grid+q)*c+k] += x.Floats()[(i*tokens+extra+y*side+z)*c+k] / float32(cell*cell)
					}
				}
			}
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return PoolPatches(ns[0], tokens, side, grid) }
		optest.Near(t, "pooled", optest.Eval(t, build, x).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0}, 1e-1, 1e-3, x)
	}
}

func TestLocalErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 2, 6), optest.F32s(r, "y", 3, 8), optest.I32s("ints", make([]int32, 3), 3), optest.F32s(r, "z", 5, 2)})
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
		optest.BuildError(t, c.want, c.want, c.build)
	}
}

// hostCases are rows of TestCases.
func hostCases() []optest.Case {
	r := rand.New(rand.NewPCG(45, 46))
	lengths, ids := optest.I32s("lengths", optest.RandomInts(r, 40, 21), 40), optest.I32s("ids", optest.RandomInts(r, 40, 30), 40)
	return []optest.Case{
		{Name: "pool patches", Inputs: []optest.Input{optest.F32s(r, "x", 12*65, 33)}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return PoolPatches(ns[0], 65, 8, 4) }},
		{Name: "local contrast", Inputs: []optest.Input{optest.F32s(r, "s", 40, 40*20), lengths, ids}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return LocalContrast(LocalArgs{Logits: ns[0], Lengths: ns[1], IDs: ns[2], First: 1})
			}},
		{Name: "hardest negatives", Inputs: []optest.Input{optest.F32s(r, "s", 40, 90), ids},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				first, second := HardestNegatives(ns[0], ns[1])
				return layout.ConcatInts(first, second)
			}},
		{Name: "relabel", Inputs: []optest.Input{optest.I32s("first", optest.RandomInts(r, 40, 40), 40), optest.I32s("second", optest.RandomInts(r, 40, 40), 40), optest.F32s(r, "logits", 40, 2)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				x := Relabel(ns[0], ns[1], ns[2], .7, .3)
				return layout.ConcatInts(x.Index, x.Labels, x.Positive)
			}},
		{Name: "cross entropy with further positives and a uniform share", WRT: []int{0},
			Inputs: []optest.Input{optest.F32s(r, "x", 5, 9000), optest.I32s("labels", []int32{7, -1, 8999, 4096, 0}, 5), optest.I32s("extra", []int32{8, 3, -1, 4096, 8000}, 5), optest.In("uniform", nil, []float32{.5})},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1], Extra: ns[2], Uniform: ns[3]})
			}},
	}
}
