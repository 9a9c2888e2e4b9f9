package encoders

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// mlpOracle is the head in float64 without dropout.
func mlpOracle(s *store, m MLP, x []float32, n int) []float64 {
	d := len(x) / n
	dense := func(name string, in []float64, from, to int) []float64 {
		w, b := s.values[name+"/weight"], s.values[name+"/bias"]
		out := make([]float64, n*to)
		for i := range n {
			for j := range to {
				sum := float64(b[j])
				for k := range from {
					sum += in[i*from+k] * float64(w[j*from+k])
				}
				out[i*to+j] = sum
			}
		}
		return out
	}
	in := make([]float64, len(x))
	for i, v := range x {
		in[i] = float64(v)
	}
	h := dense("head/fc1", in, d, m.Hidden)
	for i, v := range h {
		if m.Activation == "relu" {
			h[i] = max(v, 0)
		} else {
			h[i] = v * 0.5 * math.Erfc(-v/math.Sqrt2)
		}
	}
	y := dense("head/fc2", h, m.Hidden, m.Out)
	for i := range n {
		row, sum := y[i*m.Out:][:m.Out], 0.0
		for _, v := range row {
			sum += v * v
		}
		for j := range row {
			row[j] /= math.Sqrt(sum)
		}
	}
	return y
}

func TestMLP(t *testing.T) {
	const n, d = 5, 7
	x := normals(3, n*d)
	for _, activation := range []string{"", "gelu", "relu"} {
		m := MLP{Hidden: 11, Out: 3, Activation: activation, Dropout: 0.5}
		s := newStore(0)
		in := s.floats("x", n, d)
		got := s.run(t, m.Forward(&Context{}, NewScope(s).In("head"), in), map[*gorgonia.Node]any{in: x})
		for i, want := range mlpOracle(s, m, x, n) {
			if math.Abs(float64(got[i])-want) > 2e-6 {
				t.Errorf("%q: element %d is %v, want %v", activation, i, got[i], want)
			}
		}
		want := []string{"head/fc1/bias (11)", "head/fc1/weight (11, 7)", "head/fc2/bias (3)", "head/fc2/weight (3, 11)"}
		if list := s.list(); !slices.Equal(list, want) {
			t.Errorf("parameters %v, want %v", list, want)
		}
	}
}

// TestMLPDropout sees to it that a key drops hidden values, and another key others.
func TestMLPDropout(t *testing.T) {
	const n, d = 4, 6
	x := normals(4, n*d)
	out := func(p float64, key []int32) []float32 {
		s := newStore(0)
		in, k := s.floats("x", n, d), s.ints("key", 2)
		m := MLP{Hidden: 64, Out: 5, Dropout: p}
		return s.run(t, m.Forward(&Context{DropoutKey: k}, NewScope(s).In("head"), in), map[*gorgonia.Node]any{in: x, k: key})
	}
	none, a, again, b := out(0, []int32{1, 2}), out(0.5, []int32{1, 2}), out(0.5, []int32{1, 2}), out(0.5, []int32{1, 3})
	if slices.Equal(none, a) || slices.Equal(a, b) || !slices.Equal(a, again) {
		t.Error("dropout must change the features, differ with the key and repeat with it")
	}
}

func TestMLPErrors(t *testing.T) {
	for _, c := range []struct {
		m     MLP
		shape []int
	}{
		{MLP{Hidden: 0, Out: 3}, []int{2, 4}},
		{MLP{Hidden: 3, Out: 0}, []int{2, 4}},
		{MLP{Hidden: 3, Out: 3, Activation: "tanh"}, []int{2, 4}},
		{MLP{Hidden: 3, Out: 3}, []int{2, 4, 5}},
	} {
		err := func() (err error) {
			defer op.Catch(&err)
			s := newStore(0)
			c.m.Forward(&Context{}, NewScope(s), s.floats("x", c.shape...))
			return nil
		}()
		if err == nil {
			t.Errorf("%+v on %v: no error", c.m, c.shape)
		}
	}
}
