package ops

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
)

// gumbel fills a slice with standard Gumbel noise.
func gumbel(r *rand.Rand, x []float32) {
	for i := range x {
		x[i] = float32(-math.Log(r.ExpFloat64()))
	}
}

// TestSampleNegativesDistribution draws many times and compares the frequencies
// with the weights.
func TestSampleNegativesDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	const draws = 20000
	logits := []float32{3, 2, 1, 9, 0, 0, 0, 9, 0, 0, 0, 9} // the last column is a queue entry
	noise := make([]float32, 9)
	for _, byColumn := range []bool{false, true} {
		in := []input{{"logits", []int{3, 4}, logits}, {"noise", []int{3, 3}, noise}}
		if byColumn {
			in[0].data = []float32{3, 0, 0, 9, 2, 0, 0, 9, 1, 0, 0, 9}
		}
		g, ns := nodes(in)
		out := SampleNegatives(ns[0], ns[1], nil, byColumn)
		m := machine(t, g, ns, in, out)
		var count [9]float64
		for range draws {
			gumbel(r, noise)
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
			a, err := m.Value(out)
			if err != nil {
				t.Fatal(err)
			}
			for i, j := range a.I32 {
				count[i*3+int(j)]++
			}
		}
		want := []float64{0, .731059, .268941, .5, 0, .5, .5, .5, 0}
		for i, n := range count {
			// Five standard deviations; the floor of 1e-4 moves row 0 by 1e-4.
			if got, tol := n/draws, 5*math.Sqrt(want[i]*(1-want[i])/draws)+2e-4; math.Abs(got-want[i]) > tol {
				t.Errorf("byColumn %t: P(%d,%d) = %.4f, want %.4f", byColumn, i/3, i%3, got, want[i])
			}
		}
	}
}

// TestSampleNegativesTraps covers what makes ALBEF's code fail.
func TestSampleNegativesTraps(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	noise := make([]float32, 16)
	noise[2], noise[4+3], noise[8+0] = 1, 1, 1
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegatives(ns[0], ns[1], ns[2], false) }
	for _, c := range []struct {
		name   string
		logits []float32
		ids    []int32
		want   []int32
	}{
		{"underflow: all but the diagonal have weight 0, noise decides", []float32{
			500, 0, 0, 0, 0, 500, 0, 0, 0, 0, 500, 0, 0, 0, 0, 500,
		}, []int32{0, 1, 2, 3}, []int32{2, 3, 0, 0}},
		{"NaN: even weights", []float32{
			nan, 5, 0, 0, 9, nan, 0, 0, 0, 9, nan, 0, nan, nan, nan, nan,
		}, []int32{0, 1, 2, 3}, []int32{2, 3, 0, 0}},
		{"infinity: even weights", []float32{
			inf, 5, 0, 0, 9, -inf, 0, 0, 0, 9, inf, 0, -inf, -inf, -inf, -inf,
		}, []int32{0, 1, 2, 3}, []int32{2, 0, 0, 0}},
		{"same id is no negative", make([]float32, 16), []int32{5, 5, 5, 1}, []int32{3, 3, 3, 0}},
		{"no negative: itself", make([]float32, 16), []int32{5, 5, 5, 5}, []int32{0, 1, 2, 3}},
	} {
		got := eval(t, build, input{"logits", []int{4, 4}, c.logits}, input{"noise", []int{4, 4}, noise}, i32s("ids", c.ids, 4))
		if !slices.Equal(got.I32, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got.I32, c.want)
		}
	}
}

func TestInts(t *testing.T) {
	x, idx := i32s("x", []int32{7, 8, 9}, 3), i32s("idx", []int32{2, 1, 0}, 3)
	for _, c := range []struct {
		name  string
		build func(ns gorgonia.Nodes) *gorgonia.Node
		want  []int32
	}{
		{"labels", func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeLabels(ns[1]) }, []int32{0, -100, 0}},
		{"iota", func(ns gorgonia.Nodes) *gorgonia.Node { return IotaInts(ns[0]) }, []int32{0, 1, 2}},
		{"concat", func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatInts(ns[0], ns[1], ns[0]) }, []int32{7, 8, 9, 2, 1, 0, 7, 8, 9}},
		{"gather", func(ns gorgonia.Nodes) *gorgonia.Node { return GatherInts(ns[0], ns[1]) }, []int32{9, 8, 7}},
	} {
		if got := eval(t, c.build, x, idx); !slices.Equal(got.I32, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got.I32, c.want)
		}
	}
	in := []input{x, i32s("idx", []int32{3}, 1)}
	g, ns := nodes(in)
	m := machine(t, g, ns, in, GatherInts(ns[0], ns[1]))
	if err := m.RunAll(); err == nil || !strings.Contains(err.Error(), "index 3 at 0") {
		t.Errorf("got error %v", err)
	}
}

// TestIntsFuzz compares random vectors with the definitions.
func TestIntsFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 4))
	for range 30 {
		n, rows := 1+r.IntN(70), 1+r.IntN(70)
		x, idx := i32s("x", randomInts(r, n, 1<<30), n), i32s("idx", randomInts(r, rows, n), rows)
		matrix := f32s(r, "matrix", rows, 1+r.IntN(3))
		iota, gathered, labels := make([]int32, rows), make([]int32, rows), make([]int32, rows)
		for i, k := range idx.data.([]int32) {
			iota[i], gathered[i] = int32(i), x.data.([]int32)[k]
			if int(k) == i {
				labels[i] = -100
			}
		}
		parts := 1 + r.IntN(5)
		var joined []int32
		for i := range parts {
			joined = append(joined, []input{x, idx}[i%2].data.([]int32)...)
		}
		concat := func(ns gorgonia.Nodes) *gorgonia.Node {
			var xs gorgonia.Nodes
			for i := range parts {
				xs = append(xs, ns[i%2])
			}
			return ConcatInts(xs...)
		}
		for name, c := range map[string]struct {
			build func(ns gorgonia.Nodes) *gorgonia.Node
			want  []int32
		}{
			"labels":         {func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeLabels(ns[1]) }, labels},
			"iota":           {func(ns gorgonia.Nodes) *gorgonia.Node { return IotaInts(ns[1]) }, iota},
			"iota of floats": {func(ns gorgonia.Nodes) *gorgonia.Node { return IotaInts(ns[2]) }, iota},
			"gather":         {func(ns gorgonia.Nodes) *gorgonia.Node { return GatherInts(ns[0], ns[1]) }, gathered},
			"concat":         {concat, joined},
		} {
			if got := eval(t, c.build, x, idx, matrix).I32; !slices.Equal(got, c.want) {
				t.Fatalf("%s of %d and %d: got %v, want %v", name, n, rows, got, c.want)
			}
		}
	}
}

func TestNegativesErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	in := []input{f32s(r, "one", 1, 4), f32s(r, "noise", 1, 1), f32s(r, "x", 3, 2), f32s(r, "y", 3, 3), i32s("ids", make([]int32, 2), 2)}
	_, ns := nodes(in)
	wantBuildError(t, "one row", "no negatives", func() { SampleNegatives(ns[0], ns[1], nil, false) })
	wantBuildError(t, "columns", "M >= B", func() { SampleNegatives(ns[2], ns[3], nil, false) })
	wantBuildError(t, "noise", "noise must have shape (3, 3)", func() { SampleNegatives(ns[3], ns[2], nil, false) })
	wantBuildError(t, "ids", "row ids must have shape (3)", func() { SampleNegatives(ns[3], ns[3], ns[4], false) })
	wantBuildError(t, "labels", "want a vector", func() { NegativeLabels(ns[2]) })
	wantBuildError(t, "concat", "at least one vector", func() { ConcatInts() })
	wantBuildError(t, "concat", "operand 1 must be", func() { ConcatInts(ns[4], ns[2]) })
	wantBuildError(t, "gather", "two vectors", func() { GatherInts(ns[4], ns[2]) })
}

// TestSampleNegativesAnyNoise checks that a row with a negative gets one, whatever
// the noise.
func TestSampleNegativesAnyNoise(t *testing.T) {
	for _, v := range []float64{math.Inf(-1), math.Inf(1), math.NaN()} {
		noise := slices.Repeat([]float32{float32(v)}, 9)
		got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegatives(ns[0], ns[1], nil, false) },
			input{"logits", []int{3, 3}, make([]float32, 9)}, input{"noise", []int{3, 3}, noise})
		for i, j := range got.I32 {
			if int(j) == i {
				t.Errorf("noise %v: row %d got itself", v, i)
			}
		}
	}
}

// TestSampleNegativesFuzz compares random batches with the definition.
func TestSampleNegativesFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	for range 60 {
		b := 2 + r.IntN(20)
		m, byColumn := b+r.IntN(4), r.IntN(2) == 0
		in := []input{f32s(r, "logits", b, m), f32s(r, "noise", b, b), i32s("ids", randomInts(r, b, 6), b)}
		x, noise, ids := in[0].data.([]float32), in[1].data.([]float32), in[2].data.([]int32)
		gumbel(r, noise)
		got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegatives(ns[0], ns[1], ns[2], byColumn) }, in...)
		for i := range b {
			row := make([]float32, b)
			for j := range row {
				row[j] = x[i*m+j]
				if byColumn {
					row[j] = x[j*m+i]
				}
			}
			best, at := math.Inf(-1), i
			for j, p := range softmax64(row) {
				if v := math.Log(p+1e-4) + float64(noise[i*b+j]); ids[j] != ids[i] && v > best {
					best, at = v, j
				}
			}
			if int(got.I32[i]) != at {
				t.Fatalf("row %d of %d, byColumn %t: got %d, want %d", i, b, byColumn, got.I32[i], at)
			}
		}
	}
}
