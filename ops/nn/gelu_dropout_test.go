package nn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// hiddenLayer runs a head of one hidden layer, whose GELU and dropout are one op or two, and returns its output and gradients.
func hiddenLayer(t *testing.T, e *kernel.Engine, rows, d int, one bool) map[string][]float32 {
	t.Helper()
	const keep = 0.7
	r := rand.New(rand.NewPCG(43, 44))
	inputs := []optest.Input{
		optest.F32s(r, "x", rows, 40), optest.F32s(r, "w1", d, 40), optest.F32s(r, "b1", d), optest.F32s(r, "w2", 30, d),
		optest.I32s("key", []int32{5, 6}, 2), optest.F32s(r, "dy", rows, 30),
	}
	g, ns := optest.Nodes(inputs)
	h, bits := Linear(ns[0], ns[1], ns[2]), DropoutBits(ns[4], 1, rows, d, keep)
	if one {
		h = GELUDropout(h, bits, keep)
	} else {
		h = Dropout(GELU(h), bits, keep)
	}
	out := Linear(h, ns[3], nil)
	grads := check.Get(gorgonia.Grad(optest.Dot(out, ns[5]), ns[:4]...))(t)
	wanted := append(gorgonia.Nodes{out}, grads...)
	m := check.Get(exec.Compile(g, exec.Config{Engine: e, Outputs: wanted}))(t)
	for i, in := range inputs {
		check.OK(t, m.SetInput(ns[i], in.Data))
	}
	check.OK(t, m.RunAll())
	values := map[string][]float32{}
	for i, n := range wanted {
		a := check.Get(m.Value(n))(t)
		values[[]string{"output", "x", "w1", "b1", "w2"}[i]] = slices.Clone(a.F32)
	}
	return values
}

// GELUDropout has the bits of GELU and Dropout in float32. In bfloat16, where it alone stores what it reads and writes so, both agree to
// the rounding.
func TestGELUDropout(t *testing.T) {
	for _, c := range []struct {
		backend, precision string
		tolerance          float64
	}{{"", "fp32", 0}, {"plain", "fp32", 0}, {"", "bf16", 2e-2}, {"plain", "bf16", 2e-2}} {
		e := check.Get(kernel.New(kernel.Options{Backend: c.backend, Threads: 2, Precision: c.precision}))(t)
		defer e.Close()
		for _, d := range []int{64, 75} { // rows that end with a word of bits, and not
			one, two := hiddenLayer(t, e, 200, d, true), hiddenLayer(t, e, 200, d, false)
			for name, want := range two {
				if c.tolerance == 0 && !slices.Equal(one[name], want) {
					t.Errorf("%s %s %d: %s: other bits than by two ops", c.backend, c.precision, d, name)
				}
				nearLargest(t, name, one[name], want, c.tolerance)
				if c.tolerance > 0 && name != "x" && slices.Equal(one[name], want) {
					t.Errorf("%s %d: no result that %s depends on was stored in bfloat16", c.backend, d, name)
				}
			}
		}
	}
}
