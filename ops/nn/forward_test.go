package nn

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestForwardAlone: without a backward pass a linear layer with an activation gives what reads it the same bits, also where both
// are bfloat16, and does not keep what the activation is applied to.
func TestForwardAlone(t *testing.T) {
	const rows, in, out = 40, 24, 48
	for _, precision := range []string{"fp32", "bf16"} {
		e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 2, Precision: precision}))(t)
		t.Cleanup(e.Close)
		var results [2][]float32
		var memory [2]int64
		for i, forward := range []bool{false, true} {
			g := gorgonia.NewGraph()
			input := func(name string, shape ...int) *gorgonia.Node {
				return gorgonia.NewTensor(g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
			}
			x, w, b, last := input("x", rows, in), input("w", out, in), input("b", out), input("last", 1, out)
			y := Linear(LinearGELU(x, w, b), last, nil)
			m := check.Get(exec.Compile(g, exec.Config{Engine: e, Outputs: gorgonia.Nodes{y}, Forward: forward}))(t)
			for k, n := range []*gorgonia.Node{x, w, b, last} {
				values := make([]float32, n.Shape().TotalSize())
				for j := range values {
					values[j] = float32((j*7+k)%11)/7 - 0.7
				}
				check.OK(t, m.SetInput(n, values))
			}
			check.OK(t, m.RunAll())
			v := check.Get(m.Value(y))(t)
			results[i], memory[i] = slices.Clone(v.F32), m.Memory()
		}
		if !slices.Equal(results[0], results[1]) {
			t.Errorf("%s: other values without a backward pass", precision)
		}
		size := int64(4) // y, of less than 256 bytes, may lie where that was
		if e.BF16() {
			size = 2
		}
		if want := memory[0] - size*rows*out + 256; memory[1] > want {
			t.Errorf("%s: %d bytes without a backward pass, %d with one: want at most %d", precision, memory[1], memory[0], want)
		}
	}
}

// TestPackedWeights: a linear layer, and parts of one, by weights that are packed once have the bits that they have without, for
// one row and for many, every part is packed once, and a run allocates nothing.
func TestPackedWeights(t *testing.T) {
	const in, out = 70, 96
	for _, precision := range []string{"fp32", "bf16"} {
		e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 2, Precision: precision}))(t)
		t.Cleanup(e.Close)
		var packs exec.Packs
		var bytes int64
		for _, rows := range []int{1, 300, 7} {
			g := gorgonia.NewGraph()
			input := func(name string, shape ...int) *gorgonia.Node {
				return gorgonia.NewTensor(g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
			}
			x, w, b := input("x", rows, in), input("w", out, in), input("b", out)
			outputs := gorgonia.Nodes{LinearGELU(x, w, b), LinearPart(x, w, b, 32, 40), LinearPart(x, w, nil, 72, 24)}
			var results [2][][]float32
			for i := range results {
				m := check.Get(exec.Compile(g, exec.Config{Engine: e, Outputs: outputs, Forward: true}))(t)
				for k, n := range []*gorgonia.Node{x, w, b} {
					values := make([]float32, n.Shape().TotalSize())
					for j := range values {
						values[j] = float32((j*j+3*k)%23)/7 - 1.5
					}
					check.OK(t, m.SetInput(n, values))
				}
				if i == 1 {
					m.SetPacks(w, &packs)
				}
				check.OK(t, m.RunAll())
				if n := allocs.PerRun(5, func() { check.OK(t, m.RunAll()) }); n != 0 {
					t.Errorf("%s, %d rows: %v allocations a run", precision, rows, n)
				}
				for _, n := range outputs {
					v := check.Get(m.Value(n))(t)
					results[i] = append(results[i], slices.Clone(v.F32))
				}
			}
			for k := range outputs {
				if !slices.Equal(results[0][k], results[1][k]) {
					t.Errorf("%s, %d rows, output %d: other values by packed weights", precision, rows, k)
				}
			}
			if bytes == 0 {
				bytes = packs.Bytes()
			}
			if got := packs.Bytes(); got != bytes {
				t.Errorf("%s, %d rows: %d bytes are packed, %d before", precision, rows, got, bytes)
			}
		}
		if e.PackWeights(&gemm.Product{TransB: true, M: 1, N: 8, K: 8, BF16: e.BF16(), B: gemm.Matrix{F32: make([]float32, 64), LD: 8}}) != nil && bytes == 0 {
			t.Errorf("%s: nothing was packed", precision)
		}
	}
}
