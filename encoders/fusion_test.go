package encoders

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// fuser is what this file tests.
type fuser interface {
	Fuse(c *Context, s Scope, images, texts *gorgonia.Node) *gorgonia.Node
}

// TestFusions compares fusions with their definitions in float64, over rows of 3 channels.
func TestFusions(t *testing.T) {
	const n, c = 4, 3
	x, y := normals(5, n*c), normals(6, n*c)
	for _, k := range []struct {
		f    fuser
		list []string
		want func(s *store, x, y []float64) []float64
	}{
		{Tucker{Dim: 2}, []string{"f/core/weight (3, 9)", "f/out/weight (2, 3)"}, fullCore},
		{Tucker{Dim: 5, Rank: 1}, []string{"f/image/weight (3, 3)", "f/out/weight (5, 3)", "f/text/weight (3, 3)"}, ranks(1, false)},
		{Tucker{Dim: 2, Rank: 4}, []string{"f/image/weight (12, 3)", "f/out/weight (2, 3)", "f/text/weight (12, 3)"}, ranks(4, false)},
		{Tucker{Dim: 2, Rank: 4, Tanh: true, Dropout: 0.5}, nil, ranks(4, true)},
		{PairAttention{Dim: 2, Dropout: 0.5}, []string{"f/out/weight (2, 3)", "f/qkv/bias (9)", "f/qkv/weight (9, 3)"}, attended},
	} {
		s := newStore(0.7)
		a, b := s.floats("x", n, c), s.floats("y", n, c)
		got := s.run(t, k.f.Fuse(&Context{}, NewScope(s).In("f"), a, b), map[*gorgonia.Node]any{a: x, b: y})
		if list := s.list(); k.list != nil && !slices.Equal(list, k.list) {
			t.Errorf("%+v: parameters %v, want %v", k.f, list, k.list)
		}
		for i := range n {
			want := k.want(s, wide(x[i*c:][:c]), wide(y[i*c:][:c]))
			for j, w := range want {
				if v := float64(got[i*len(want)+j]); !(math.Abs(v-w) <= 1e-5*max(1, math.Abs(w))) {
					t.Fatalf("%+v: element %d of row %d is %v, want %v", k.f, j, i, v, w)
				}
			}
		}
	}
}

func wide(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

// out is W_o z.
func (s *store) out(z []float64) []float64 { return s.product("f/out/weight", z) }

// product multiplies a weight (n, d) with a vector.
func (s *store) product(name string, x []float64) (y []float64) {
	for w := s.values[name]; len(w) > 0; w = w[len(x):] {
		sum := 0.0
		for i, v := range x {
			sum += float64(w[i]) * v
		}
		y = append(y, sum)
	}
	return y
}

// fullCore is the fusion by a full core, whose row k is T_k.
func fullCore(s *store, x, y []float64) []float64 {
	z, core := make([]float64, len(x)), s.values["f/core/weight"]
	for k := range z {
		for i, a := range x {
			for j, b := range y {
				z[k] += float64(core[(k*len(x)+i)*len(y)+j]) * a * b
			}
		}
	}
	return s.out(z)
}

// ranks is that by a core of a rank.
func ranks(rank int, tanh bool) func(s *store, x, y []float64) []float64 {
	return func(s *store, x, y []float64) []float64 {
		a, b := s.product("f/image/weight", x), s.product("f/text/weight", y)
		z := make([]float64, len(x))
		for r := range rank {
			for k := range z {
				u, v := a[r*len(z)+k], b[r*len(z)+k]
				if tanh {
					u, v = math.Tanh(u), math.Tanh(v)
				}
				z[k] += u * v
			}
		}
		return s.out(z)
	}
}

// attended is the fusion by attention.
func attended(s *store, x, y []float64) []float64 {
	d := len(x)
	tokens := [2][]float64{s.product("f/qkv/weight", x), s.product("f/qkv/weight", y)}
	for _, q := range tokens {
		for i := range q {
			q[i] += float64(s.values["f/qkv/bias"][i])
		}
	}
	z := make([]float64, d)
	for _, q := range tokens {
		var e [2]float64
		for k, other := range tokens {
			for i := range d {
				e[k] += q[i] * other[d+i] / math.Sqrt(float64(d))
			}
		}
		share := 1 / (1 + math.Exp(e[1]-e[0]))
		for i := range d {
			z[i] += (share*tokens[0][2*d+i] + (1-share)*tokens[1][2*d+i]) / 2
		}
	}
	return s.out(z)
}

// TestFusionDropout: a key drops features, and another key others.
func TestFusionDropout(t *testing.T) {
	const n, c = 4, 6
	x, y := normals(5, n*c), normals(6, n*c)
	for _, f := range []fuser{Tucker{Dim: 5, Rank: 2, Dropout: 0.5}, Tucker{Dim: 5, Dropout: 0.5}, PairAttention{Dim: 5, Dropout: 0.5}} {
		out := func(key ...int32) []float32 {
			s := newStore(0)
			a, b, k := s.floats("x", n, c), s.floats("y", n, c), s.ints("key", 2)
			ctx := &Context{DropoutKey: k}
			if key == nil {
				ctx = &Context{}
			}
			return s.run(t, f.Fuse(ctx, NewScope(s).In("f"), a, b), map[*gorgonia.Node]any{a: x, b: y, k: append(key, 0, 0)[:2]})
		}
		none, one, again, other := out(), out(1, 2), out(1, 2), out(1, 3)
		if slices.Equal(none, one) || slices.Equal(one, other) || !slices.Equal(one, again) {
			t.Errorf("%+v: dropout must change the features, differ with the key and repeat with it", f)
		}
	}
}

func TestTuckerErrors(t *testing.T) {
	for want, f := range map[string]Tucker{"(got -1 and 2)": {Dim: 2, Rank: -1}, "(got 1 and 0)": {Rank: 1}} {
		err := func() (err error) {
			defer op.Catch(&err)
			s := newStore(0)
			x := s.floats("x", 2, 3)
			f.Fuse(&Context{}, NewScope(s), x, x)
			return nil
		}()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", f, err, want)
		}
	}
}

// TestFusionsOfUnequalSides: features of other numbers of pairs, or of channels, are refused with their shapes.
func TestFusionsOfUnequalSides(t *testing.T) {
	for _, f := range []fuser{Tucker{Dim: 2}, Tucker{Dim: 2, Rank: 2}, PairAttention{Dim: 2}} {
		for _, other := range [][2]int{{3, 3}, {2, 4}} {
			err := func() (err error) {
				defer op.Catch(&err)
				s := newStore(0)
				f.Fuse(&Context{}, NewScope(s), s.floats("x", 2, 3), s.floats("y", other[0], other[1]))
				return nil
			}()
			if want := fmt.Sprintf("(got texts (%d, %d))", other[0], other[1]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got error %v, want %s", f, err, want)
			}
		}
	}
}
