package encoders

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// mlpOracle is the head in float64 without dropout.
func mlpOracle(s *store, m MLP, x []float32, n int) []float64 {
	width := len(x) / n
	h := make([]float64, len(x))
	for i, v := range x {
		h[i] = float64(v)
	}
	dense := func(name string, to int) []float64 {
		w, b := s.values[name+"/weight"], s.values[name+"/bias"]
		out := make([]float64, n*to)
		for i := range n {
			for j := range to {
				sum := float64(b[j])
				for k := range width {
					sum += h[i*width+k] * float64(w[j*width+k])
				}
				out[i*to+j] = sum
			}
		}
		return out
	}
	if m.Shared > 0 && m.Shared != width {
		h, width = dense("head/shared", m.Shared), m.Shared
	}
	for l := 1; l <= m.Layers; l++ {
		y := dense(fmt.Sprintf("head/fc%d", l), m.Hidden)
		if m.LayerNorm {
			gain, bias := s.values[fmt.Sprintf("head/norm%d/weight", l)], s.values[fmt.Sprintf("head/norm%d/bias", l)]
			for i := range n {
				row, mean, square := y[i*m.Hidden:][:m.Hidden], 0.0, 0.0
				for _, v := range row {
					mean += v / float64(m.Hidden)
				}
				for _, v := range row {
					square += (v - mean) * (v - mean) / float64(m.Hidden)
				}
				for j, v := range row {
					row[j] = (v-mean)/math.Sqrt(square+1e-5)*float64(gain[j]) + float64(bias[j])
				}
			}
		}
		for i, v := range y {
			switch m.Activation {
			case "relu":
				y[i] = max(v, 0)
			case "tanh":
				y[i] = math.Tanh(v)
			case "silu":
				y[i] = v / (1 + math.Exp(-v))
			default:
				y[i] = v * 0.5 * math.Erfc(-v/math.Sqrt2)
			}
			if m.Residual && width == m.Hidden {
				y[i] += h[i]
			}
		}
		h, width = y, m.Hidden
	}
	y := dense(fmt.Sprintf("head/fc%d", m.Layers+1), m.Space.Dim)
	if m.Space.Euclid {
		return y
	}
	g := m.Space.SphereDim()
	for at := 0; at < len(y); at += g {
		sum := 0.0
		for _, v := range y[at : at+g] {
			sum += v * v
		}
		for j := range y[at : at+g] {
			y[at+j] /= math.Sqrt(sum)
		}
	}
	return y
}

// TestMLP holds heads of all depths against the oracle.
func TestMLP(t *testing.T) {
	const n, d = 5, 7
	x := normals(3, n*d)
	one := []string{"head/fc1/bias (11)", "head/fc1/weight (11, 7)", "head/fc2/bias (3)", "head/fc2/weight (3, 11)"}
	sphere := space.Space{Dim: 3}
	for _, c := range []struct {
		m    MLP
		list []string // parameters, nil where others say them
	}{
		{MLP{Space: sphere, Layers: 1, Hidden: 11, Dropout: 0.5}, one},
		{MLP{Space: sphere, Layers: 1, Hidden: 11, Activation: "gelu"}, one},
		{MLP{Space: sphere, Layers: 1, Hidden: 11, Activation: "relu"}, one},
		{MLP{Space: sphere, Layers: 1, Hidden: 11, Activation: "silu"}, one},
		{MLP{Space: sphere, Layers: 1, Hidden: 11, Activation: "tanh"}, one},
		{MLP{Space: sphere, Shared: d, Layers: 1, Hidden: 11, Activation: "tanh"}, one}, // as wide as it is
		{MLP{Space: sphere, Shared: 9, Layers: 1, Hidden: 9, Activation: "tanh"}, []string{
			"head/fc1/bias (9)", "head/fc1/weight (9, 9)", "head/fc2/bias (3)", "head/fc2/weight (3, 9)", "head/shared/bias (9)", "head/shared/weight (9, 7)"}},
		{MLP{Space: sphere}, []string{"head/fc1/bias (3)", "head/fc1/weight (3, 7)"}},
		{MLP{Space: sphere, Layers: 2, Hidden: 11, LayerNorm: true}, []string{
			"head/fc1/bias (11)", "head/fc1/weight (11, 7)", "head/fc2/bias (11)", "head/fc2/weight (11, 11)", "head/fc3/bias (3)", "head/fc3/weight (3, 11)",
			"head/norm1/bias (11)", "head/norm1/weight (11)", "head/norm2/bias (11)", "head/norm2/weight (11)"}},
		{MLP{Space: sphere, Layers: 3, Hidden: 11, Residual: true, Activation: "relu"}, nil},
		{MLP{Space: sphere, Layers: 3, Hidden: 7, Residual: true, LayerNorm: true, Activation: "silu"}, nil}, // the first layer has a skip as well
		{MLP{Space: space.Space{Dim: 6, Spheres: 3}, Layers: 2, Hidden: 11, Residual: true}, nil},
		{MLP{Space: space.Space{Dim: 6, Euclid: true}, Layers: 2, Hidden: 11}, nil},
	} {
		s := newStore(0.3)
		in := s.floats("x", n, d)
		got := s.run(t, c.m.Forward(&Context{}, NewScope(s).In("head"), in), map[*gorgonia.Node]any{in: x})
		for i, want := range mlpOracle(s, c.m, x, n) {
			if !(math.Abs(float64(got[i])-want) <= 4e-6*max(1, math.Abs(want))) {
				t.Errorf("%+v: element %d is %v, want %v", c.m, i, got[i], want)
				break
			}
		}
		if c.m.Dropout == 0 { // tokens are mapped as class tokens are
			rows := s.run(t, c.m.Rows(NewScope(s).In("head"), in), map[*gorgonia.Node]any{in: x})
			if !slices.Equal(rows, got) {
				t.Errorf("%+v: tokens are mapped to other rows than class tokens", c.m)
			}
		}
		if list := s.list(); c.list != nil && !slices.Equal(list, c.list) {
			t.Errorf("%+v: parameters %v, want %v", c.m, list, c.list)
		}
	}
}

// TestMLPTokens: rows of tokens have no dropout, and a head that has some does not take them.
func TestMLPTokens(t *testing.T) {
	err := func() (err error) {
		defer op.Catch(&err)
		s := newStore(0)
		MLP{Space: space.Space{Dim: 3}, Layers: 1, Hidden: 4, Dropout: 0.5}.Raw(NewScope(s), s.floats("x", 2, 4))
		return nil
	}()
	check.Error(t, err, "tokens are mapped without dropout (got 0.5)")
}

// TestMLPDropout sees to it that a key drops hidden values, and another key others.
func TestMLPDropout(t *testing.T) {
	const n, d = 4, 6
	x := normals(4, n*d)
	out := func(p float64, key []int32) []float32 {
		s := newStore(0)
		in, k := s.floats("x", n, d), s.ints("key", 2)
		m := MLP{Space: space.Space{Dim: 5}, Layers: 1, Hidden: 64, Dropout: p}
		return s.run(t, m.Forward(&Context{DropoutKey: k}, NewScope(s).In("head"), in), map[*gorgonia.Node]any{in: x, k: key})
	}
	none, a, again, b := out(0, []int32{1, 2}), out(0.5, []int32{1, 2}), out(0.5, []int32{1, 2}), out(0.5, []int32{1, 3})
	if slices.Equal(none, a) || slices.Equal(a, b) || !slices.Equal(a, again) {
		t.Error("dropout must change the features, differ with the key and repeat with it")
	}
}

func TestMLPErrors(t *testing.T) {
	sphere := space.Space{Dim: 3}
	for _, c := range []struct {
		m     MLP
		shape []int
	}{
		{MLP{Space: sphere, Layers: 1}, []int{2, 4}},
		{MLP{Layers: 1, Hidden: 3}, []int{2, 4}},
		{MLP{Space: sphere, Layers: -1, Hidden: 3}, []int{2, 4}},
		{MLP{Space: sphere, Layers: 1, Hidden: 3, Activation: "sine"}, []int{2, 4}},
		{MLP{Space: sphere, Layers: 1, Hidden: 3}, []int{2, 4, 5}},
		{MLP{Space: space.Space{Dim: 4, Spheres: 3}, Layers: 1, Hidden: 3}, []int{2, 4}},
		{MLP{Space: space.Space{Dim: 4, Spheres: 2, Tokens: true}, Layers: 1, Hidden: 3}, []int{2, 4}},
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
