package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// halfBlock is a feed-forward block whose layer norms, GELU, dropout and gradients
// are read by products: its inputs and what it computes.
type halfBlock struct {
	inputs []optest.Input
	build  func(ns gorgonia.Nodes) *gorgonia.Node
}

// Inputs of a halfBlock.
const (
	halfX = iota
	halfGamma
	halfBeta
	halfW1
	halfB1
	halfW2
	halfB2
	halfR
	halfGamma2
	halfBeta2
	halfW3
	halfParams
	halfKey = halfParams
)

func newHalfBlock(rows, d int) halfBlock {
	r := rand.New(rand.NewPCG(41, uint64(d)))
	return halfBlock{
		inputs: []optest.Input{
			optest.F32s(r, "x", rows, d), optest.F32s(r, "gamma", d), optest.F32s(r, "beta", d),
			optest.F32s(r, "w1", 2*d, d), optest.F32s(r, "b1", 2*d), optest.F32s(r, "w2", d, 2*d), optest.F32s(r, "b2", d),
			optest.F32s(r, "r", rows, d), optest.F32s(r, "gamma2", d), optest.F32s(r, "beta2", d), optest.F32s(r, "w3", 30, d),
			optest.I32s("key", []int32{5, 6}, 2), optest.F32s(r, "dy", rows, 30),
		},
		build: func(ns gorgonia.Nodes) *gorgonia.Node {
			y := LayerNorm(ns[halfX], ns[halfGamma], ns[halfBeta], 1e-5)
			h := Linear(LinearGELU(y, ns[halfW1], ns[halfB1]), ns[halfW2], ns[halfB2])
			bits := DropoutBits(ns[halfKey], 1, rows, d, 0.9)
			_, norm := AddNorm(AddNormArgs{H: h, X: ns[halfR], Bits: bits, Gamma: ns[halfGamma2], Beta: ns[halfBeta2], Keep: 0.9, Eps: 1e-5})
			return Linear(norm, ns[halfW3], nil)
		},
	}
}

// run returns the output and the gradients, and what the machine holds. With full
// every result is an output, and so stays float32.
func (b halfBlock) run(t *testing.T, e *kernel.Engine, full bool) (values map[string][]float32, memory int64) {
	t.Helper()
	g, ns := optest.Nodes(b.inputs)
	out := b.build(ns)
	grads := check.Get(gorgonia.Grad(optest.Dot(out, ns[halfKey+1]), ns[:halfParams]...))(t)
	wanted := append(gorgonia.Nodes{out}, grads...)
	outputs := slices.Clone(wanted)
	if full {
		for _, n := range g.AllNodes() {
			if n.Op() != nil && n.Dtype() == tensor.Float32 {
				outputs = append(outputs, n)
			}
		}
	}
	m := check.Get(exec.Compile(g, exec.Config{Engine: e, Outputs: outputs}))(t)
	for i, in := range b.inputs {
		check.OK(t, m.SetInput(ns[i], in.Data))
	}
	check.OK(t, m.RunAll())
	values = map[string][]float32{}
	for i, n := range wanted {
		a := check.Get(m.Value(n))(t)
		name := "output"
		if i > 0 {
			name = b.inputs[i-1].Name
		}
		values[name] = slices.Clone(a.F32)
	}
	if !full {
		if n := allocs.PerRun(5, func() {
			check.OK(t, m.RunAll())
		}); n != 0 {
			t.Errorf("a run allocates %v times", n)
		}
	}
	return values, m.Memory()
}

// TestHalfResults compares a run that stores results in bfloat16 where their readers allow it
// with one that stores everything as float32, for products in bfloat16: they agree to the
// rounding, and are not the same.
func TestHalfResults(t *testing.T) {
	for _, backend := range []string{"plain", ""} {
		e := check.Get(kernel.New(kernel.Options{Backend: backend, Threads: 2, Precision: "bf16"}))(t)
		defer e.Close()
		for _, size := range [][2]int{{140, 64}, {300, 61}} { // rows that end with a word of bits, and not
			b := newHalfBlock(size[0], size[1])
			name := fmt.Sprintf("%s %v: ", backend, size)
			want, _ := b.run(t, e, true)
			got, half := b.run(t, e, false)
			for _, param := range []string{"output", "x", "gamma", "beta", "w1", "b1", "w2", "b2", "r", "gamma2", "beta2", "w3"} {
				nearLargest(t, name+param, got[param], want[param], 2e-2)
				if slices.Equal(got[param], want[param]) {
					t.Errorf("%sno result that %s depends on was stored in bfloat16", name, param)
				}
			}
			f := check.Get(kernel.New(kernel.Options{Backend: backend, Threads: 2}))(t)
			defer f.Close()
			if _, full := b.run(t, f, false); half >= full*9/10 {
				t.Errorf("%s%d bytes, with float32 %d", name, half, full)
			}
		}
	}
}

// nearLargest compares values relative to the largest one.
func nearLargest(t *testing.T, name string, got, want []float32, tolerance float64) {
	t.Helper()
	var largest float64
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i, v := range want {
		if d := math.Abs(float64(got[i] - v)); !(d <= tolerance*largest) {
			t.Errorf("%s: element %d is %v, want %v", name, i, got[i], v)
			return
		}
	}
}

// TestColumnSumsHalf sums columns of bfloat16 values in float32.
func TestColumnSumsHalf(t *testing.T) {
	const rows, cols = 300, 70
	e := check.Get(kernel.New(kernel.Options{Threads: 2, Precision: "bf16"}))(t)
	defer e.Close()
	r := rand.New(rand.NewPCG(8, 9))
	x, key := optest.F32s(r, "x", rows, cols), optest.I32s("key", []int32{1, 2}, 2)
	g, ns := optest.Nodes([]optest.Input{x, key})
	kept := Dropout(ns[0], DropoutBits(ns[1], 0, rows, cols, 1), 1) // x itself
	sums := op.Apply(columnSums(3, 80), kept)
	m := check.Get(exec.Compile(g, exec.Config{Engine: e, Outputs: gorgonia.Nodes{sums}}))(t)
	for i, in := range []optest.Input{x, key} {
		check.OK(t, m.SetInput(ns[i], in.Data))
	}
	check.OK(t, m.RunAll())
	xs := optest.Rounded(x.Floats())
	want := make([]float32, 80)
	copy(want[3:], optest.Sums(1, cols, rows, func(_, j, k int) float64 { return xs[k*cols+j] }))
	a := check.Get(m.Value(sums))(t)
	optest.Near(t, "sums", a.F32, want, 1e-6)
}
