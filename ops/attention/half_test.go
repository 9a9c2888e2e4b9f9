package attention

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestAttentionHalf: attention whose output only a linear layer reads stores it in
// bfloat16, which changes no bit of the layer's output and of the gradients, since the
// layer rounds it anyway. One sequence has no key at all. Heads of 32 values and more are read where they lie.
func TestAttentionHalf(t *testing.T) {
	for _, width := range []int{16, 32} {
		t.Run(fmt.Sprint(width), func(t *testing.T) { testAttentionHalf(t, width) })
	}
}

func testAttentionHalf(t *testing.T, width int) {
	e := check.Get(kernel.New(kernel.Options{Threads: 2, Precision: "bf16"}))(t)
	defer e.Close()
	const rows, l, heads = 5, 37, 3
	d := heads * width
	r := rand.New(rand.NewPCG(9, 9))
	in := []optest.Input{optest.F32s(r, "qkv", rows*l, 3*d), optest.F32s(r, "w", 20, d), optest.I32s("lengths", []int32{37, 0, 20, 1, 37}, rows), optest.F32s(r, "dy", rows*l, 20)}
	run := func(full bool) (values [][]float32, memory int64) {
		g, ns := optest.Nodes(in)
		h := SelfAttention(SelfArgs{QKV: ns[0], Lengths: ns[2], Len: l, Heads: heads, Keep: 1})
		out := nn.Linear(h, ns[1], nil)
		grads := check.Get(gorgonia.Grad(optest.Dot(out, ns[3]), ns[0], ns[1]))(t)
		outputs := append(gorgonia.Nodes{out}, grads...)
		if full {
			outputs = append(outputs, h)
		}
		m := check.Get(exec.Compile(g, exec.Config{Engine: e, Outputs: outputs}))(t)
		for i := range in {
			check.OK(t, m.SetInput(ns[i], in[i].Data))
		}
		for range 2 { // the second run starts from what the first one left
			check.OK(t, m.RunAll())
		}
		for _, n := range outputs[:3] {
			a := check.Get(m.Value(n))(t)
			values = append(values, slices.Clone(a.F32))
		}
		return values, m.Memory()
	}
	want, all := run(true)
	got, half := run(false)
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("result %d differs", i)
		}
	}
	if saved := all - half; saved < int64(rows*l*d*2*9/10) {
		t.Errorf("%d bytes, with a float32 output %d", half, all)
	}
}
