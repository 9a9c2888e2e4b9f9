package objectives

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

var engine = func() *kernel.Engine {
	e, err := kernel.New(kernel.Options{Threads: 2})
	if err != nil {
		panic(err)
	}
	return e
}()

// bench is a graph with its inputs' values.
type bench struct {
	t      testing.TB
	g      *gorgonia.ExprGraph
	values map[*gorgonia.Node]any
}

func newBench(t testing.TB) *bench {
	return &bench{t, gorgonia.NewGraph(), map[*gorgonia.Node]any{}}
}

// floats adds an input, a scalar without a shape.
func (b *bench) floats(name string, v []float32, shape ...int) *gorgonia.Node {
	var n *gorgonia.Node
	if len(shape) == 0 {
		n = gorgonia.NewScalar(b.g, tensor.Float32, gorgonia.WithName(name))
	} else {
		n = gorgonia.NewTensor(b.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	}
	b.values[n] = v
	return n
}

func (b *bench) ints(name string, v ...int32) *gorgonia.Node {
	n := gorgonia.NewTensor(b.g, tensor.Int32, 1, gorgonia.WithShape(len(v)), gorgonia.WithName(name))
	b.values[n] = v
	return n
}

func (b *bench) scalarInt(name string, v int) *gorgonia.Node {
	n := gorgonia.NewScalar(b.g, tensor.Int32, gorgonia.WithName(name))
	b.values[n] = []int32{int32(v)}
	return n
}

// compile returns the machine of nodes, with all inputs bound.
func (b *bench) compile(nodes ...*gorgonia.Node) *exec.Machine {
	b.t.Helper()
	m := check.Get(exec.Compile(b.g, exec.Config{Engine: engine, Outputs: nodes}))(b.t)
	for n, v := range b.values {
		check.OK(b.t, m.SetInput(n, v))
	}
	return m
}

// run computes nodes, copies.
func (b *bench) run(nodes ...*gorgonia.Node) []exec.Array {
	b.t.Helper()
	m := b.compile(nodes...)
	check.OK(b.t, m.RunAll())
	var out []exec.Array
	for _, n := range nodes {
		a := check.Get(m.Value(n))(b.t)
		out = append(out, exec.Array{Shape: a.Shape, F32: slices.Clone(a.F32), I32: slices.Clone(a.I32)})
	}
	return out
}

// lossAndGrads returns a scalar and its gradients.
func (b *bench) lossAndGrads(loss *gorgonia.Node, wrt ...*gorgonia.Node) (float64, [][]float32) {
	b.t.Helper()
	grads := check.Get(gorgonia.Grad(loss, wrt...))(b.t)
	out := b.run(append(gorgonia.Nodes{loss}, grads...)...)
	var gs [][]float32
	for _, a := range out[1:] {
		gs = append(gs, a.F32)
	}
	return float64(out[0].F32[0]), gs
}

// unitRows returns n unit rows of c channels.
func unitRows(r *rand.Rand, n, c int) []float32 {
	out := make([]float32, n*c)
	for i := range n {
		var s float64
		for d := range c {
			v := r.NormFloat64()
			out[i*c+d] = float32(v)
			s += v * v
		}
		for d := range c {
			out[i*c+d] /= float32(math.Sqrt(s))
		}
	}
	return out
}

// The oracle in float64, loop by loop as in eq. 1, 2 and 6 of ALBEF (Li et al. 2021).

// cosineScore is the cosine, or on several spheres the sum of their cosines.
func cosineScore(t Temperature) Score {
	return Score{Terms: []Term{{Kind: scoring.Cosine, Weight: 1}}, Temperature: t}
}

// scores returns [f keys^T | f queue^T]/tau of rows f, for the columns given.
func scores(f, bank []float32, c int, tau float64) [][]float64 {
	out := make([][]float64, len(f)/c)
	for i := range out {
		for j := range len(bank) / c {
			var s float64
			for d := range c {
				s += float64(f[i*c+d]) * float64(bank[j*c+d])
			}
			out[i] = append(out[i], s/tau)
		}
	}
	return out
}

// softmax returns the probabilities of a row and their logarithms.
func softmax(row []float64) (p, log []float64) {
	most := slices.Max(row)
	var z float64
	for _, v := range row {
		z += math.Exp(v - most)
	}
	for _, v := range row {
		l := v - most - math.Log(z)
		log, p = append(log, l), append(p, math.Exp(l))
	}
	return p, log
}

// softLoss is mean_i -sum_j y_ij log softmax(s)_ij with y = (1-alpha)*hard +
// alpha*softmax(teacher); a row whose hard target is nil is left out.
func softLoss(s, hard, teacher [][]float64, alpha float64) float64 {
	var sum, rows float64
	for i := range s {
		if hard[i] == nil {
			continue
		}
		rows++
		_, log := softmax(s[i])
		soft := make([]float64, len(s[i]))
		if teacher != nil {
			soft, _ = softmax(teacher[i])
		}
		for j := range log {
			sum -= ((1-alpha)*hard[i][j] + alpha*soft[j]) * log[j]
		}
	}
	if rows == 0 {
		return 0
	}
	return sum / rows
}

// diagonal is the hard target of pairs: column i of row i.
func diagonal(rows, cols int) [][]float64 {
	out := make([][]float64, rows)
	for i := range out {
		out[i] = make([]float64, cols)
		out[i][i] = 1
	}
	return out
}

// byID is the hard target of ids.
func byID(rowIDs, colIDs []int32) [][]float64 {
	out := make([][]float64, len(rowIDs))
	for i, id := range rowIDs {
		out[i] = make([]float64, len(colIDs))
		var n float64
		for _, c := range colIDs {
			if c == id {
				n++
			}
		}
		for j, c := range colIDs {
			if c == id {
				out[i][j] = 1 / n
			}
		}
	}
	return out
}

// fdGrad is the gradient of f for x by central differences in float64 arithmetic.
func fdGrad(x []float32, f func() float64) []float64 {
	out := make([]float64, len(x))
	for i, old := range x {
		const h = 1.0 / 4096
		x[i] = old + h
		hi, up := float64(x[i]), f()
		x[i] = old - h
		lo, down := float64(x[i]), f()
		x[i] = old
		out[i] = (up - down) / (hi - lo)
	}
	return out
}

func near(t testing.TB, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func nearAll(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	most := 1e-3
	for _, v := range want {
		most = max(most, math.Abs(v))
	}
	for i := range got {
		if !(math.Abs(float64(got[i])-want[i]) <= tol*most) {
			t.Errorf("%s[%d] is %v, want %v", what, i, got[i], want[i])
		}
	}
}
