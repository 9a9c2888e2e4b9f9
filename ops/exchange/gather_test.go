package exchange

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// echo is rank 1 of 3 that all have the same values.
type echo struct{ parallel.Single }

func (echo) Rank() int { return 1 }
func (echo) Size() int { return 3 }

func (echo) Gather(dst, x []float32) ([]float32, error) {
	return append(append(append(dst, x...), x...), x...), nil
}

func (echo) GatherInts(dst, x []int32) ([]int32, error) {
	return append(append(append(dst, x...), x...), x...), nil
}

func (echo) SumShare(own, x []float32) error {
	for i, v := range x[len(own):][:len(own)] {
		own[i] = 3 * v
	}
	return nil
}

func TestCases(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	optest.CheckCases(t, []optest.Case{
		{Name: "gather", Inputs: []optest.Input{optest.F32s(r, "x", 50, 33)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Gather(echo{}, ns[0]) }},
		{Name: "gather of integers", Inputs: []optest.Input{optest.I32s("x", []int32{3, 1, 4}, 3)}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Gather(echo{}, ns[0]) }},
	})
}

// TestHash: gathers of groups of different sizes are different nodes, two of one node are one.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	two := paralleltest.Ranks(2)[0]
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"gather":    {func() *gorgonia.Node { return Gather(echo{}, h.M) }, func() *gorgonia.Node { return Gather(two, h.M) }},
		"gather dx": {optest.Variant(share(parallel.Single{}), h.M), optest.Variant(share(two), h.M)},
	})
	if first, second := Gather(two, h.M), Gather(two, h.M); first != second {
		t.Error("two gathers of one node are two nodes")
	}
}

// sides makes on each of n ranks a graph of x (rows, 2) with cost(all rows, rank), and runs them together.
func sides(t *testing.T, x [][]float32, cost func(all *gorgonia.Node, rank int) *gorgonia.Node) (costs []float64, grads [][]float32) {
	t.Helper()
	n := len(x)
	costs, grads = make([]float64, n), make([][]float32, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, g := range paralleltest.Ranks(n) {
		graph, ns := optest.Nodes([]optest.Input{optest.In("x", []int{len(x[i]) / 2, 2}, x[i])})
		c := cost(Gather(g, ns[0]), i)
		d := check.Get(gorgonia.Grad(c, ns[0]))(t)
		m := check.Get(exec.Compile(graph, exec.Config{Engine: optest.Engine, Outputs: gorgonia.Nodes{c, d[0]}}))(t)
		check.OK(t, m.SetInput(ns[0], x[i]))
		wg.Go(func() {
			if errs[i] = m.RunAll(); errs[i] != nil {
				return
			}
			v, err := m.Scalar(c)
			a, err2 := m.Value(d[0])
			costs[i], grads[i], errs[i] = float64(v), slices.Clone(a.F32), errors.Join(err, err2)
		})
	}
	wg.Wait()
	check.OK(t, errors.Join(errs...))
	return costs, grads
}

// TestGather: all rows in the order of the ranks, and the gradient of the sum of what the ranks make of them.
func TestGather(t *testing.T) {
	x := [][]float32{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, -12}}
	at := func(k int) func(*gorgonia.Node, int) *gorgonia.Node { // element k
		return func(all *gorgonia.Node, _ int) *gorgonia.Node {
			w := make([]float32, 12)
			w[k] = 1
			return arith.Sum(arith.SumProducts(all, weights(all, w), 2))
		}
	}
	for k, want := range slices.Concat(x...) {
		costs, _ := sides(t, x, at(k))
		for i, c := range costs {
			if c != float64(want) {
				t.Errorf("rank %d: value %d is %v, want %v", i, k, c, want)
			}
		}
	}
	// Rank i weighs the squares by i+1: the gradient of the sum in x is 2 x (1+2+3) on every rank.
	_, grads := sides(t, x, func(all *gorgonia.Node, rank int) *gorgonia.Node {
		return arith.WeightedSum([]float32{float32(rank + 1)}, arith.Sum(arith.Square(all)))
	})
	for i, d := range grads {
		for j, v := range d {
			if want := 12 * x[i][j]; !(math.Abs(float64(v-want)) <= 1e-5) {
				t.Errorf("rank %d: gradient %d is %v, want %v", i, j, v, want)
			}
		}
	}
	// A constant has none.
	_, grads = sides(t, x, func(all *gorgonia.Node, _ int) *gorgonia.Node {
		return arith.Sum(arith.Add(arith.Square(op.Detach(all)), all))
	})
	for i, d := range grads {
		if !slices.Equal(d, []float32{3, 3, 3, 3}) {
			t.Errorf("rank %d: gradient %v, want 3 of each", i, d)
		}
	}
}

// weights is an input with values of its own.
func weights(like *gorgonia.Node, values []float32) *gorgonia.Node {
	w := gorgonia.NewTensor(like.Graph(), gorgonia.Float32, 2, gorgonia.WithShape(like.Shape()...), gorgonia.WithName("weights"))
	if err := gorgonia.Let(w, tensor.New(tensor.WithShape(like.Shape()...), tensor.WithBacking(values))); err != nil {
		panic(err)
	}
	return w
}

// TestGatherFails: what the group says is what the run says, and ranks with different rows are told.
func TestGatherFails(t *testing.T) {
	lost := errors.New("the line is dead")
	alone := paralleltest.Ranks(1)[0]
	graph, ns := optest.Nodes([]optest.Input{optest.In("x", []int{2, 2}, make([]float32, 4))})
	y := Gather(alone, ns[0])
	m := check.Get(exec.Compile(graph, exec.Config{Engine: optest.Engine, Outputs: gorgonia.Nodes{y}}))(t)
	check.OK(t, m.SetInput(ns[0], make([]float32, 4)))
	alone.Fail = lost
	if err := m.RunAll(); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	if err := gather(make([]float32, 4), make([]float32, 2), echo{}.Gather); err == nil {
		t.Error("rows of other ranks that are fewer are not told")
	}
	_, err := func() (n *gorgonia.Node, err error) {
		defer op.Catch(&err)
		return Gather(alone, gorgonia.NewScalar(graph, gorgonia.Float32, gorgonia.WithName("s"))), nil
	}()
	if err == nil {
		t.Error("a scalar is gathered")
	}
}
