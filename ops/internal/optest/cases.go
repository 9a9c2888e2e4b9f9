package optest

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
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/gorgonia"
)

// Case is an op with operands that are large enough for several threads.
type Case struct {
	Name   string
	Inputs []Input
	WRT    []int // inputs with a gradient
	Build  func(ns gorgonia.Nodes) *gorgonia.Node
	// GEMM marks results that pass through a matrix product, whose bits may depend
	// on how the library cuts it into tiles.
	GEMM bool
	// Jumps marks gradients that jump where a number crosses zero, as behind a positive part: by rounding some of many
	// are on the other side. On a device few elements may then be away further than others, as deviceJumps says.
	Jumps bool
	// Tied says whether two whole numbers at a place of a result stand for values that are equal but for rounding, such
	// as the places of rows that are equally near; nil: none do.
	Tied func(place int, got, want int32) bool
}

// Compile makes a machine for the op and its gradients, under a fixed weighting.
func (c Case) Compile(t testing.TB, e *kernel.Engine) (*exec.Machine, gorgonia.Nodes) {
	t.Helper()
	return c.compileOn(t, e, nil)
}

// compileOn is Compile for a device, nil: the host.
func (c Case) compileOn(t testing.TB, e *kernel.Engine, d exec.Device) (*exec.Machine, gorgonia.Nodes) {
	t.Helper()
	inputs := append([]Input(nil), c.Inputs...)
	g, ns := Nodes(inputs)
	cost := c.Build(ns)
	outputs := gorgonia.Nodes{cost}
	if shape := cost.Shape(); len(shape) > 0 && len(c.WRT) > 0 {
		w := F32s(rand.New(rand.NewPCG(13, 14)), "test weights", shape...)
		wn := gorgonia.NewTensor(g, gorgonia.Float32, len(shape), gorgonia.WithShape(shape...),
			gorgonia.WithName(w.Name))
		inputs, ns = append(inputs, w), append(ns, wn)
		cost = Dot(cost, wn)
	}
	if len(c.WRT) > 0 {
		var wrt gorgonia.Nodes
		for _, i := range c.WRT {
			wrt = append(wrt, ns[i])
		}
		grads := check.Get(gorgonia.Grad(cost, wrt...))(t)
		outputs = append(outputs, grads...)
	}
	m := check.Get(exec.Compile(g, exec.Config{Engine: e, Device: d, Outputs: outputs}))(t)
	for i, in := range inputs {
		check.OK(t, m.SetInput(ns[i], in.Data))
	}
	return m, outputs
}

// CheckCases runs what every op must hold for each case: see allocations, threadCount and
// overwrites.
func CheckCases(t *testing.T, cases []Case) {
	t.Run("allocations", func(t *testing.T) { allocations(t, cases) })
	t.Run("thread count", func(t *testing.T) { threadCount(t, cases) })
	t.Run("overwrites", func(t *testing.T) { overwrites(t, cases) })
}

// allocations fails for a case whose run with its gradient allocates.
func allocations(t *testing.T, cases []Case) {
	t.Helper()
	for _, c := range cases {
		m, _ := c.Compile(t, Engine)
		n := allocs.PerRun(20, func() {
			check.OK(t, m.RunAll())
		})
		if n != 0 {
			t.Errorf("%s: a run with its gradient allocates %v times", c.Name, n)
		}
	}
}

// threadCount wants the same bits from any number of threads.
func threadCount(t *testing.T, cases []Case) {
	t.Helper()
	engines := map[int]*kernel.Engine{}
	for _, n := range []int{1, 2, 5} {
		e := check.Get(kernel.New(kernel.Options{Threads: n}))(t)
		defer e.Close()
		engines[n] = e
	}
	values := func(c Case, threads int) string {
		m, outputs := c.Compile(t, engines[threads])
		check.OK(t, m.RunAll())
		var s []string
		for _, n := range outputs {
			a := check.Get(m.Value(n))(t)
			s = append(s, fmt.Sprint(a.F32, a.I32))
		}
		return fmt.Sprint(s)
	}
	for _, c := range cases {
		if c.GEMM {
			continue
		}
		want := values(c, 1)
		for _, threads := range []int{2, 5} {
			if values(c, threads) != want {
				t.Errorf("%s: %d threads give other bits than one", c.Name, threads)
			}
		}
	}
}

// overwrites fills the results of a run with NaN and wants the same ones from
// the next: an op must write every element, zeros too. Matrix products are the same
// bits for the same operands and threads.
func overwrites(t *testing.T, cases []Case) {
	t.Helper()
	nan := float32(math.NaN())
	for _, c := range cases {
		m, outputs := c.Compile(t, Engine)
		var want [][]float32
		for run := range 2 {
			check.OK(t, m.RunAll())
			for i, n := range outputs {
				a := check.Get(m.Value(n))(t)
				got := slices.Clone(a.F32)
				for _, v := range a.I32 {
					got = append(got, float32(v))
				}
				if run == 0 {
					want = append(want, got)
				} else if !slices.Equal(got, want[i]) {
					t.Errorf("%s: result %d keeps values of the run before", c.Name, i)
				}
			}
			for _, n := range outputs {
				a := check.Get(m.Value(n))(t)
				vector.Fill(a.F32, nan)
				for j := range a.I32 {
					a.I32[j] = -1 << 31
				}
			}
		}
	}
}
