package cuda_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/tensor"
)

func identity(n int) []float32 {
	x := make([]float32, n*n)
	for i := range n {
		x[i*n+i] = 1
	}
	return x
}

// TestFactors multiplies parts of operands by the identity: what products read of them. Two parts of one product do not share memory.
func TestFactors(t *testing.T) {
	d := cudatest.Open(t)
	r := rand.New(rand.NewPCG(4, 4))
	const rows, cols, limit = 37, 30, 17
	for _, test := range []struct {
		name       string
		from, to   exec.Type
		first, ld  int
		limit      int
		multiplied int // rows
	}{
		{"as it lies", exec.Float32, exec.Float32, 0, 0, 0, rows},
		{"rounded", exec.Float32, exec.BFloat16, 0, 0, 0, rows},
		{"rounded part", exec.Float32, exec.BFloat16, 2*cols + 2, 0, 0, rows - 3},
		{"columns of rows", exec.Float32, exec.BFloat16, 0, cols, 0, rows},
		{"limited", exec.Float32, exec.Float32, 0, 0, limit, rows},
		{"limited and rounded", exec.Float32, exec.BFloat16, 0, 0, limit, rows},
		{"limited in vain", exec.Float32, exec.BFloat16, 0, 0, cols + 9, rows},
		{"limit below zero", exec.Float32, exec.BFloat16, 0, 0, -5, rows},
		{"widened", exec.BFloat16, exec.Float32, 0, 0, 0, rows},
	} {
		t.Run(test.name, func(t *testing.T) {
			wide := cols
			if test.ld > 0 {
				wide = cols - 11
			}
			x, values := onDevice(t, d, test.from, random(r, rows*cols))
			eye, _ := onDevice(t, d, exec.Float32, identity(wide))
			out, _ := onDevice(t, d, exec.Float32, make([]float32, test.multiplied*wide))
			count := countOf(t, d, int32(test.limit))
			c := &exec.DeviceCall{In: []exec.Operand{x, eye, count}, Out: out, BF16: test.to == exec.BFloat16}
			part := cuda.Part{In: 0, From: test.first, Rows: test.multiplied, Cols: wide, LD: test.ld, Type: test.to}
			if test.limit != 0 {
				part.Limit = 2
			}
			f := cuda.NewFactors(c, part, cuda.Part{In: 1, Rows: wide, Cols: wide, Type: test.to})
			inStep(t, c, func() {
				m := f.Place()
				if m[0].Type != test.to || m[1].Type != test.to {
					t.Errorf("types %v and %v, want %v", m[0].Type, m[1].Type, test.to)
				}
				p := cuda.Product{M: test.multiplied, N: wide, K: wide}
				cuda.Multiply(c, p, m[0], m[1], cuda.MatrixOf(out, 0, wide), nil)
			})
			want := make([]float32, test.multiplied*wide)
			for i := range want {
				row, col := i/wide, i%wide
				if test.limit == 0 || col < test.limit {
					want[i] = values[test.first+row*cols+col]
				}
			}
			if test.to == exec.BFloat16 {
				vector.RoundBF16(want, want)
			}
			near(t, fetched(t, out), want, 0)
		})
	}
}

// TestFactorsOfShadow reads the copy that a mirror keeps, where there is one.
func TestFactorsOfShadow(t *testing.T) {
	d := cudatest.Open(t)
	host := random(rand.New(rand.NewPCG(4, 5)), 300)
	m, err := d.Mirror(host, []cuda.Span{{Lo: 0, Hi: 300}}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Store(); err != nil {
		t.Fatal(err)
	}
	memory, ok := d.Mirrored(host)
	if !ok {
		t.Fatal("no mirror")
	}
	s := exec.Spec{Shape: tensor.Shape{20, 15}}
	b := memory.Buffer(0, s).(*cuda.Buffer)
	out, _ := onDevice(t, d, exec.Float32, make([]float32, 1))
	c := &exec.DeviceCall{In: []exec.Operand{{Spec: s, Buffer: b}}, Out: out, BF16: true}
	f := cuda.NewFactors(c, cuda.Part{In: 0, From: 30, Rows: 18, Cols: 15, Type: exec.BFloat16})
	inStep(t, c, func() {
		if got, want := f.Place()[0], (cuda.Matrix{At: b.Shadow() + 60, LD: 15, Type: exec.BFloat16}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// inStep prepares a step that does work, and runs it.
func inStep(t *testing.T, c *exec.DeviceCall, work func()) {
	t.Helper()
	step, err := cuda.On(func(*exec.DeviceCall) cuda.Step { return work })[cuda.Name].Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := step(); err != nil {
		t.Fatal(err)
	}
}

// TestStepError: a step ends with what first went wrong in it, and nothing is enqueued behind that; so does its preparation.
func TestStepError(t *testing.T) {
	d := cudatest.Open(t)
	out, _ := onDevice(t, d, exec.Float32, []float32{3})
	c := &exec.DeviceCall{Out: out}
	first := errors.New("first")
	steps := cuda.On(func(c *exec.DeviceCall) cuda.Step {
		return func() {
			d.Note(nil)
			d.Note(first)
			d.Note(errors.New("second"))
			cuda.Load(c, &plusSource, "no such kernel").Enqueue(cuda.Grid{})
			cuda.Zero(out)
		}
	})
	step, err := steps[cuda.Name].Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := step(); !errors.Is(err, first) {
			t.Errorf("the step gives %v", err)
		}
	}
	if got := fetched(t, out); got[0] != 3 {
		t.Errorf("a step that has failed has gone on: %v", got)
	}
	_, err = cuda.On(func(*exec.DeviceCall) cuda.Step { d.Note(first); return func() {} })[cuda.Name].Prepare(c)
	if !errors.Is(err, first) {
		t.Errorf("the preparation gives %v", err)
	}
	inStep(t, c, func() { cuda.Zero(out) })
}

func countOf(t *testing.T, d *cuda.Device, n int32) exec.Operand {
	t.Helper()
	s := exec.Spec{Shape: tensor.Shape{}, Type: exec.Int32}
	m, err := d.Alloc(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Free() })
	b := m.Buffer(0, s)
	b.Host().I32[0] = n
	if err := b.Store(); err != nil {
		t.Fatal(err)
	}
	return exec.Operand{Spec: s, Buffer: b}
}
