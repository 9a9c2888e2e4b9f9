package encoders

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestSelfPool compares with the definition: sequences of 4 tokens of which the first may take no part, with lengths
// and without, and one of no token. Dropout needs a key.
func TestSelfPool(t *testing.T) {
	const r, l, d = 3, 4, 5
	lengths, rows := []int32{4, 1, 3}, make([]float32, r*l*d)
	for i := range rows {
		rows[i] = float32(math.Sin(float64(3*i + 1)))
	}
	for _, first := range []int{0, 1} {
		for _, all := range []bool{true, false} {
			s := newStore(.3)
			x := Local{Rows: s.floats("rows", r*l, d), Len: l, First: first}
			inputs := map[*gorgonia.Node]any{x.Rows: rows}
			if !all {
				x.Lengths = s.ints("lengths", r)
				inputs[x.Lengths] = lengths
			}
			got := s.run(t, SelfPool{Dropout: .4}.Forward(&Context{}, NewScope(s), x), inputs)
			want := make([]float64, 0, r*d)
			for i := range r {
				end := l
				if !all {
					end = int(lengths[i])
				}
				want = append(want, s.selfPool(rows[i*l*d:][first*d:end*d], d)...)
			}
			for i, v := range got {
				if !(math.Abs(float64(v)-want[i]) < 1e-5) {
					t.Fatalf("first %d, all %t: %v, want %v", first, all, got, want)
				}
			}
		}
	}
	s := newStore(.3)
	key, x := s.ints("key", 2), Local{Rows: s.floats("rows", r*l, d), Len: l}
	pooled := SelfPool{Dropout: .4}.Forward(&Context{DropoutKey: key}, NewScope(s), x)
	inputs := map[*gorgonia.Node]any{x.Rows: rows, key: []int32{1, 2}}
	one := s.run(t, pooled, inputs)
	again := s.run(t, pooled, inputs)
	if !slices.Equal(one, again) {
		t.Error("a key gives other masks each time")
	}
	inputs[key] = []int32{3, 4}
	if slices.Equal(one, s.run(t, pooled, inputs)) {
		t.Error("another key gives the same masks")
	}
}

// selfPool is the definition for the tokens (n, d) of one sequence.
func (s *store) selfPool(rows []float32, d int) []float64 {
	n, mean, out := len(rows)/d, make([]float64, d), make([]float64, d)
	hidden := func(name string, x []float64) (h []float64) {
		for o := range d {
			sum := float64(s.values[name+"/bias"][o])
			for i, v := range x {
				sum += v * float64(s.values[name+"/weight"][o*d+i])
			}
			h = append(h, math.Tanh(sum))
		}
		return h
	}
	token := func(i int) (x []float64) {
		for _, v := range rows[i*d : (i+1)*d] {
			x = append(x, float64(v))
		}
		return x
	}
	for i := range n {
		for c, v := range token(i) {
			mean[c] += v / float64(n)
		}
	}
	g, length := hidden("global", mean), 0.
	for i := range n {
		logit, x := 0., token(i)
		for c, h := range hidden("local", x) {
			logit += h * g[c] * float64(s.values["common"][c])
		}
		for c, v := range x {
			out[c] += math.Exp(logit) * v
		}
	}
	for _, v := range out {
		length += v * v
	}
	for c := range out {
		if length > 0 {
			out[c] /= math.Sqrt(length)
		}
	}
	return out
}
