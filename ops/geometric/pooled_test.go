package geometric

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// testPool is rows in memory; a row of bad cannot be read.
type testPool struct {
	width int
	data  []float32
	bad   int
}

var errRow = errors.New("row cannot be read")

func (p *testPool) Rows() int  { return len(p.data) / p.width }
func (p *testPool) Width() int { return p.width }
func (p *testPool) Row(i int, dst []float32) error {
	if i == p.bad {
		return errRow
	}
	copy(dst, p.data[i*p.width:])
	return nil
}

// pooledCase is a call of Pooled for a head with one hidden layer.
type pooledCase struct {
	b, q, k, d, hidden, out int
	unit                    bool // the head normalises its rows
	drop                    float32
	chunk                   int
	o                       Options
}

// inputs are the rows of the neighbours, the parameters of the head, the key of its masks.
// The last anchor misses a neighbour, that before it has one point alone.
func (k pooledCase) inputs(r *rand.Rand) []optest.Input {
	near := optest.RandomInts(r, k.b*k.k, k.q)
	for i := range k.k {
		near[(k.b-2)*k.k+i] = near[(k.b-2)*k.k]
	}
	near[len(near)-1] = -1
	return []optest.Input{
		optest.I32s("near", near, k.b, k.k), optest.F32s(r, "w1", k.hidden, k.d), optest.F32s(r, "b1", k.hidden),
		optest.F32s(r, "w2", k.out, k.hidden), optest.F32s(r, "b2", k.out), optest.I32s("key", []int32{5, -6}, 2),
	}
}

func (k pooledCase) pool() *testPool {
	r := rand.New(rand.NewPCG(17, 18))
	p := &testPool{width: k.d, data: make([]float32, k.q*k.d), bad: -1}
	for i := range p.data {
		p.data[i] = float32(r.NormFloat64())
	}
	return p
}

// head is the head in the graph of points, with copies of the parameters ns[1:5].
func (k pooledCase) head(ns gorgonia.Nodes) Head {
	return func(points, key *gorgonia.Node) (*gorgonia.Node, []Parameter) {
		var list []Parameter
		for _, n := range ns[1:5] {
			c := gorgonia.NewTensor(points.Graph(), tensor.Float32, len(n.Shape()), gorgonia.WithShape(n.Shape()...), gorgonia.WithName(n.Name()))
			list = append(list, Parameter{n, c})
		}
		h := nn.GELU(nn.Linear(points, list[0].Copy, list[1].Copy))
		if key != nil {
			h = nn.Dropout(h, nn.DropoutBits(key, 1, points.Shape()[0], k.hidden, 1-k.drop), 1-k.drop)
		}
		z := nn.Linear(h, list[2].Copy, list[3].Copy)
		if k.unit {
			z = nn.L2Normalize(z, 1e-12)
		}
		return z, list
	}
}

func (k pooledCase) args(ns gorgonia.Nodes) PooledArgs {
	a := PooledArgs{Neighbours: ns[0], Pool: k.pool(), Head: k.head(ns), Chunk: k.chunk, Kernel: k.o.Kernel, Epsilon: k.o.Epsilon, Scale: k.o.Scale}
	if k.drop > 0 {
		a.Key = ns[5]
	}
	return a
}

func (k pooledCase) build(ns gorgonia.Nodes) *gorgonia.Node { return Pooled(k.args(ns)) }

// want is the loss by the definition, one number at a time and without dropout.
func (k pooledCase) want(in []optest.Input) (s float64) {
	near, p := in[0].Data.([]int32), k.pool()
	dense := func(x, w, b []float32, n int) (y []float32) {
		d := len(w) / n
		for ; len(x) > 0; x = x[d:] {
			for o := range n {
				sum := float64(b[o])
				for c := range d {
					sum += float64(x[c]) * float64(w[o*d+c])
				}
				y = append(y, float32(sum))
			}
		}
		return y
	}
	for a := range k.b {
		rows := near[a*k.k : (a+1)*k.k]
		if slices.Contains(rows, -1) {
			continue
		}
		var x []float32
		for _, n := range rows {
			x = append(x, p.data[int(n)*k.d:][:k.d]...)
		}
		h := dense(x, in[1].Floats(), in[2].Floats(), k.hidden)
		for i, v := range h {
			h[i] = float32(float64(v) * .5 * math.Erfc(-float64(v)/math.Sqrt2))
		}
		z := dense(h, in[3].Floats(), in[4].Floats(), k.out)
		if k.unit {
			for i := range k.k {
				optest.Normalise(z[i*k.out : (i+1)*k.out])
			}
		}
		s += k.o.loss(x, z, k.k) / float64(k.b)
	}
	return s
}

// pooledCases are all kernels and scales, behind heads with and without normalisation.
func pooledCases(t *testing.T, f func(t *testing.T, k pooledCase, r *rand.Rand)) {
	for i, name := range geomKernels {
		for j, scale := range geomScales {
			k := pooledCase{b: 5, q: 30, k: 4, d: 6, hidden: 7, out: 5, unit: (i+j)%2 == 0, chunk: 8, o: Options{Kernel: name, Epsilon: .8, Scale: scale}}
			t.Run(name+" "+scale, func(t *testing.T) { f(t, k, rand.New(rand.NewPCG(51, uint64(i+j)))) })
		}
	}
}

func TestPooledAgainstDefinition(t *testing.T) {
	pooledCases(t, func(t *testing.T, k pooledCase, r *rand.Rand) {
		in := k.inputs(r)
		optest.Near(t, "loss", optest.Eval(t, k.build, in...).F32, []float32{float32(k.want(in))}, 1e-5)
	})
}

func TestPooledGradient(t *testing.T) {
	pooledCases(t, func(t *testing.T, k pooledCase, r *rand.Rand) {
		wrt := []int{1, 2, 3}
		if k.unit || k.o.Scale == Unit { // else the last bias moves all points alike
			wrt = append(wrt, 4)
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return arith.WeightedSum([]float32{100}, k.build(ns)) }
		optest.CheckGrad(t, build, wrt, 4e-3, 1e-2, k.inputs(r)...)
	})
}

// TestPooledVector is a neighbourhood worked by hand: a head that halves one axis.
func TestPooledVector(t *testing.T) {
	p := &testPool{width: 2, data: []float32{0, 0, 1, 0, 0, 2}, bad: -1}
	build := func(ns gorgonia.Nodes) *gorgonia.Node {
		return Pooled(PooledArgs{Neighbours: ns[0], Pool: p, Kernel: Heat, Epsilon: .8, Scale: None,
			Head: func(points, _ *gorgonia.Node) (*gorgonia.Node, []Parameter) {
				w := gorgonia.NewTensor(points.Graph(), tensor.Float32, 2, gorgonia.WithShape(2, 2), gorgonia.WithName("w"))
				return nn.Linear(points, w, nil), []Parameter{{ns[1], w}}
			}})
	}
	got := optest.Eval(t, build, optest.I32s("near", []int32{0, 1, 2}, 1, 3), optest.In("w", tensor.Shape{2, 2}, []float32{1, 0, 0, .5}))
	optest.Near(t, "loss", got.F32, []float32{.139270}, 5e-6)
}

// results are the loss and the gradients of the parameters.
func (k pooledCase) results(t *testing.T, in []optest.Input) [][]float32 {
	t.Helper()
	grads, loss := optest.Gradients(t, k.build, []int{1, 2, 3, 4}, in...)
	return append(grads, []float32{float32(loss())})
}

// TestPooledChunks: neither how many anchors are worked on at a time nor a ragged last chunk
// changes the loss or a gradient, with dropout either.
func TestPooledChunks(t *testing.T) {
	for _, drop := range []float32{0, .4} {
		k := pooledCase{b: 11, q: 60, k: 6, d: 9, hidden: 40, out: 8, unit: true, drop: drop, o: Options{Kernel: Heat, Epsilon: .3, Scale: Unit}}
		in := k.inputs(rand.New(rand.NewPCG(53, 1)))
		want := k.results(t, in)
		if Anchors(k.b, k.k, 0) != k.b {
			t.Fatal("the first is in several chunks")
		}
		for _, chunk := range []int{1, 6, 13, 18, 24, 30, 66, 1000} {
			k.chunk = chunk
			for i, got := range k.results(t, in) {
				optest.Near(t, fmt.Sprintf("dropout %v, chunk %d, result %d", drop, chunk, i), got, want[i], 2e-5)
			}
		}
	}
}

// TestAnchors shares anchors out as equally as can be.
func TestAnchors(t *testing.T) {
	for _, c := range []struct{ b, k, chunk, want int }{
		{2000, 150, 0, 27}, {2000, 150, 150, 1}, {2000, 150, 1, 1}, {10, 4, 16, 4}, {9, 4, 16, 3}, {11, 4, 16, 4}, {3, 4, 1 << 20, 3},
	} {
		if got := Anchors(c.b, c.k, c.chunk); got != c.want {
			t.Errorf("%d anchors of %d points in chunks of %d rows: %d at a time, want %d", c.b, c.k, c.chunk, got, c.want)
		}
	}
}

// TestPooledDropout: masks are those of the key, and no two anchors share theirs.
func TestPooledDropout(t *testing.T) {
	k := pooledCase{b: 6, q: 60, k: 5, d: 9, hidden: 64, out: 8, unit: true, drop: .5, chunk: 10, o: Options{Kernel: Heat, Epsilon: .3, Scale: Unit}}
	in := k.inputs(rand.New(rand.NewPCG(54, 1)))
	loss := func() float32 { return optest.Eval(t, k.build, in...).F32[0] }
	first := loss()
	if again := loss(); again != first {
		t.Errorf("the same key gives %v and %v", first, again)
	}
	in[5].Data.([]int32)[0]++
	if other := loss(); other == first {
		t.Error("another key gives the same masks")
	}
	// All anchors have one neighbourhood: with masks in common all would have one loss.
	near := in[0].Data.([]int32)
	for i := range near {
		near[i] = near[i%k.k]
	}
	all := loss()
	k.b, k.chunk = 1, 0
	in[0] = optest.I32s("near", near[:k.k], 1, k.k)
	if one := loss(); one == all {
		t.Error("anchors share their masks")
	}
}

// TestPooledAsQueue: with a linear head it is Geometric, whose first point is the anchor.
func TestPooledAsQueue(t *testing.T) {
	q := geomCase{b: 5, q: 20, k: 4, d: 6, out: 5, tokens: 1, groups: 1, bias: true, o: Options{Kernel: Heat, Epsilon: .5, Scale: Unit}}
	in := q.inputs(rand.New(rand.NewPCG(55, 1)))
	want, loss := optest.Gradients(t, q.build, []int{3, 4}, in...)
	p := &testPool{width: q.d, data: append(slices.Clone(in[1].Floats()), in[0].Floats()...), bad: -1}
	var near []int32
	for a := range q.b {
		near = append(append(near, int32(q.q+a)), in[2].Data.([]int32)[a*(q.k-1):(a+1)*(q.k-1)]...)
	}
	build := func(ns gorgonia.Nodes) *gorgonia.Node {
		return Pooled(PooledArgs{Neighbours: ns[0], Pool: p, Kernel: q.o.Kernel, Epsilon: q.o.Epsilon, Scale: q.o.Scale,
			Head: func(points, _ *gorgonia.Node) (*gorgonia.Node, []Parameter) {
				w := gorgonia.NewTensor(points.Graph(), tensor.Float32, 2, gorgonia.WithShape(q.out, q.d), gorgonia.WithName("w"))
				b := gorgonia.NewTensor(points.Graph(), tensor.Float32, 1, gorgonia.WithShape(q.out), gorgonia.WithName("b"))
				return nn.L2Normalize(nn.Linear(points, w, b), 1e-12), []Parameter{{ns[1], w}, {ns[2], b}}
			}})
	}
	got, pooled := optest.Gradients(t, build, []int{1, 2}, optest.I32s("near", near, q.b, q.k), in[3], in[4])
	optest.Near(t, "loss", []float32{float32(pooled())}, []float32{float32(loss())}, 1e-6)
	optest.Near(t, "weight", got[0], want[0], 2e-5)
	optest.Near(t, "bias", got[1], want[1], 2e-5)
}

func TestPooledErrors(t *testing.T) {
	k := pooledCase{b: 4, q: 9, k: 3, d: 4, hidden: 5, out: 3, o: Options{Kernel: Heat, Epsilon: 1, Scale: Unit}}
	in := k.inputs(rand.New(rand.NewPCG(56, 1)))
	_, ns := optest.Nodes(in)
	for want, change := range map[string]func(a *PooledArgs){
		"unknown kernel":            func(a *PooledArgs) { a.Kernel = "gauss" },
		"want neighbours (B, K)":    func(a *PooledArgs) { a.Neighbours = ns[5] },
		"want a pool with rows":     func(a *PooledArgs) { a.Pool = nil },
		"chunk must not be below 0": func(a *PooledArgs) { a.Chunk = -1 },
		"key must have shape (2)":   func(a *PooledArgs) { a.Key = ns[2] },
		"the copy of b2 has shape (3) (got (5))": func(a *PooledArgs) {
			a.Head = func(points, key *gorgonia.Node) (*gorgonia.Node, []Parameter) {
				z, list := k.head(ns)(points, key)
				list[1].Node, list[3].Node = list[3].Node, list[1].Node
				return z, list
			}
		},
	} {
		optest.BuildError(t, want, want, func() {
			a := k.args(ns)
			change(&a)
			Pooled(a)
		})
	}
	near := in[0].Data.([]int32)
	near[1] = 9
	optest.RunError(t, "neighbour 1 of anchor 0: want a row in [0, 9), or -1 for none (got 9)", k.build, in...)
	near[1] = 3
	p := k.pool()
	p.bad = 3
	bad := func(ns gorgonia.Nodes) *gorgonia.Node {
		a := k.args(ns)
		a.Pool = p
		return Pooled(a)
	}
	optest.RunError(t, errRow.Error(), bad, in...)
}

// TestPooledFindsNaN: with the search for numbers that are not finite the op within a chunk is
// named.
func TestPooledFindsNaN(t *testing.T) {
	k := pooledCase{b: 4, q: 9, k: 3, d: 4, hidden: 5, out: 3, chunk: 3, o: Options{Kernel: Heat, Epsilon: 1, Scale: Unit}}
	in := k.inputs(rand.New(rand.NewPCG(57, 1)))
	in[2].Floats()[0] = 3e38
	in[1].Floats()[0] = 3e38
	g, ns := optest.Nodes(in)
	loss := k.build(ns)
	m, err := exec.Compile(g, exec.Config{Engine: optest.Engine, Outputs: gorgonia.Nodes{loss}, CheckNaN: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range in {
		check.OK(t, m.SetInput(ns[i], x.Data))
	}
	err = m.RunAll()
	if bad, ok := errors.AsType[*exec.NonFiniteError](err); !ok || !strings.HasPrefix(bad.Op, "linear") || !strings.Contains(err.Error(), pooledKind) {
		t.Errorf("got %v, want the linear layer of a chunk named", err)
	}
}

// pooledVariants returns calls that differ in one argument each.
func pooledVariants(ns gorgonia.Nodes) (builds []func() *gorgonia.Node) {
	k := pooledCase{b: 4, q: 9, k: 3, d: 4, hidden: 5, out: 3, o: Options{Kernel: Heat, Epsilon: .8, Scale: Unit}}
	for _, set := range []func(a *PooledArgs){
		func(*PooledArgs) {},
		func(a *PooledArgs) { a.Key = ns[5] },
		func(a *PooledArgs) { a.Kernel = Linear },
		func(a *PooledArgs) { a.Epsilon = .8000001 },
		func(a *PooledArgs) { a.Scale = None },
		func(a *PooledArgs) { a.Chunk = 3 },
		func(a *PooledArgs) { a.Pool = &testPool{width: 4, data: make([]float32, 40)} },
	} {
		builds = append(builds, func() *gorgonia.Node {
			a := k.args(ns)
			set(&a)
			return Pooled(a)
		})
	}
	return builds
}

func TestPooledHash(t *testing.T) {
	k := pooledCase{b: 4, q: 9, k: 3, d: 4, hidden: 5, out: 3}
	_, ns := optest.Nodes(k.inputs(rand.New(rand.NewPCG(58, 1))))
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{pooledKind: pooledVariants(ns)})
}
