package exec_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestAccumulateGradients lets the gradients of real layers meet: states and a weight
// that are used several times. Sums that take place in a product round differently
// from those of a pass of their own.
func TestAccumulateGradients(t *testing.T) {
	const rows, d, vocabulary = 12, 6, 7
	r := rand.New(rand.NewPCG(9, 9))
	f := &feed{g: gorgonia.NewGraph()}
	input := func(name string, shape ...int) *gorgonia.Node {
		n, v := matrix(f.g, r, name, shape...)
		f.inputs, f.values = append(f.inputs, n), append(f.values, v)
		return n
	}
	table, w, b := input("table", vocabulary, d), input("w", d, d), input("b", d)
	gamma, beta := input("gamma", d), input("beta", d)
	ids := gorgonia.NewVector(f.g, tensor.Int32, gorgonia.WithShape(rows), gorgonia.WithName("ids"))
	x := nn.GELU(nn.Embed(table, ids))
	for range 2 { // one weight for both layers; x goes into the product and the sum
		x = nn.LayerNorm(arith.Add(x, nn.Linear(x, w, b)), gamma, beta, 1e-5)
	}
	first := layout.StridedRows(x, 0, 3, rows/3) // x goes into two losses
	loss := arith.WeightedSum([]float32{1, 2},
		arith.Mean(nn.GELU(nn.Linear(x, table, nil))), arith.Mean(nn.GELU(nn.Linear(first, w, nil))))
	grads := check.Get(gorgonia.Grad(loss, f.inputs...))(t)
	f.outputs = append(gorgonia.Nodes{loss}, grads...)
	compile := func(cfg exec.Config) *exec.Machine {
		m := f.compile(t, cfg)
		check.OK(t, m.SetInput(ids, []int32{0, 3, 3, 6, 1, 2, 0, 5, 5, 3, 1, 1}))
		run(t, m)
		return m
	}
	want := compile(exec.Config{Outputs: append(computed(f.g, f.outputs), f.outputs...)})
	got := compile(exec.Config{})
	// At least two of the three gradients of w are added to the first.
	if n := want.Nodes() - got.Nodes(); n < 2 {
		t.Errorf("%d sums take place in products, want at least 2", n)
	}
	for k, n := range f.outputs {
		g := check.Get(got.Value(n))(t)
		w := check.Get(want.Value(n))(t)
		for i := range w.F32 {
			if d := math.Abs(float64(g.F32[i] - w.F32[i])); !(d <= 1e-6) {
				t.Errorf("output %d[%d] is %v, want %v", k, i, g.F32[i], w.F32[i])
			}
		}
	}
}
