package contrast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// gumbel fills a slice with standard Gumbel noise.
func gumbel(r *rand.Rand, x []float32) {
	for i := range x {
		x[i] = float32(-math.Log(r.ExpFloat64()))
	}
}

// TestSampleNegativesDistribution draws many times and compares the frequencies
// with the weights. A positive far ahead changes nothing without a floor, and gives every
// negative the same weight with one.
func TestSampleNegativesDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	const draws = 20000
	logits := []float32{3, 2, 1, 9, 0, 0, 0, 9, 0, 0, 0, 9} // the last column is a queue entry
	noise := make([]float32, 9)
	for _, c := range []struct {
		name     string
		byColumn bool
		own      float32 // logit of the positive of row 0
		floor    float64
		first    []float64 // probabilities of row 0
	}{
		{"rows", false, 3, 0, []float64{0, .731059, .268941}},
		{"columns", true, 3, 0, []float64{0, .731059, .268941}},
		{"softmax underflows", false, 203, 0, []float64{0, .731059, .268941}},
		{"floor", false, 3, 1e-4, []float64{0, .731, .269}}, // moves by less than 1e-4
		{"floor beyond the softmax", false, 203, 1e-4, []float64{0, .5, .5}},
	} {
		in := []optest.Input{optest.In("logits", []int{3, 4}, logits), optest.In("noise", []int{3, 3}, noise)}
		if c.byColumn {
			in[0].Data = []float32{3, 0, 0, 9, 2, 0, 0, 9, 1, 0, 0, 9}
		}
		in[0].Floats()[0] = c.own
		g, ns := optest.Nodes(in)
		out := SampleNegatives(ns[0], ns[1], nil, c.byColumn, c.floor)
		m := optest.Machine(t, g, ns, in, out)
		var count [9]float64
		for range draws {
			gumbel(r, noise)
			check.OK(t, m.RunAll())
			a := check.Get(m.Value(out))(t)
			for i, j := range a.I32 {
				count[i*3+int(j)]++
			}
		}
		want := append(slices.Clone(c.first), .5, 0, .5, .5, .5, 0)
		for i, n := range count {
			// Five standard deviations; the figures are rounded.
			if got, tol := n/draws, 5*math.Sqrt(want[i]*(1-want[i])/draws)+2e-4; !(math.Abs(got-want[i]) <= tol) {
				t.Errorf("%s: P(%d,%d) = %.4f, want %.4f", c.name, i/3, i%3, got, want[i])
			}
		}
	}
}

// TestSampleNegativesTraps covers what makes ALBEF's code fail.
func TestSampleNegativesTraps(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	noise := make([]float32, 16)
	noise[2], noise[4+3], noise[8+0] = 1, 1, 1
	build := func(floor float64) func(ns gorgonia.Nodes) *gorgonia.Node {
		return func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegatives(ns[0], ns[1], ns[2], false, floor) }
	}
	for _, c := range []struct {
		name   string
		logits []float32
		ids    []int32
		want   []int32
	}{
		{"underflow: all but the diagonal have softmax 0 and one logit, noise decides", []float32{
			500, 0, 0, 0, 0, 500, 0, 0, 0, 0, 500, 0, 0, 0, 0, 500,
		}, []int32{0, 1, 2, 3}, []int32{2, 3, 0, 0}},
		{"NaN: even weights", []float32{
			nan, 5, 0, 0, 9, nan, 0, 0, 0, 9, nan, 0, nan, nan, nan, nan,
		}, []int32{0, 1, 2, 3}, []int32{2, 3, 0, 0}},
		{"infinity: even weights", []float32{
			inf, 5, 0, 0, 9, -inf, 0, 0, 0, 9, inf, 0, -inf, -inf, -inf, -inf,
		}, []int32{0, 1, 2, 3}, []int32{2, 0, 0, 0}},
		{"every negative at -Inf: even weights", []float32{
			5, -inf, -inf, -inf, -inf, 5, -inf, -inf, -inf, -inf, 5, -inf, -inf, -inf, -inf, 5,
		}, []int32{0, 1, 2, 3}, []int32{2, 3, 0, 0}},
		{"same id is no negative", make([]float32, 16), []int32{5, 5, 5, 1}, []int32{3, 3, 3, 0}},
		{"no negative: itself", make([]float32, 16), []int32{5, 5, 5, 5}, []int32{0, 1, 2, 3}},
	} {
		for _, floor := range []float64{0, 1e-4} {
			got := optest.Eval(t, build(floor), optest.In("logits", []int{4, 4}, c.logits), optest.In("noise", []int{4, 4}, noise), optest.I32s("ids", c.ids, 4))
			if !slices.Equal(got.I32, c.want) {
				t.Errorf("%s, floor %g: got %v, want %v", c.name, floor, got.I32, c.want)
			}
		}
	}
}

func TestNegativesErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	in := []optest.Input{optest.F32s(r, "one", 1, 4), optest.F32s(r, "noise", 1, 1), optest.F32s(r, "x", 3, 2), optest.F32s(r, "y", 3, 3), optest.I32s("ids", make([]int32, 2), 2)}
	_, ns := optest.Nodes(in)
	optest.BuildError(t, "one row", "no negatives", func() { SampleNegatives(ns[0], ns[1], nil, false, 0) })
	optest.BuildError(t, "columns", "M >= B", func() { SampleNegatives(ns[2], ns[3], nil, false, 0) })
	optest.BuildError(t, "noise", "noise must have shape (3, 3)", func() { SampleNegatives(ns[3], ns[2], nil, false, 0) })
	optest.BuildError(t, "ids", "row ids must have shape (3)", func() { SampleNegatives(ns[3], ns[3], ns[4], false, 0) })
	optest.BuildError(t, "labels", "want a vector", func() { NegativeLabels(ns[2]) })
	optest.BuildError(t, "concat", "at least one vector", func() { layout.ConcatInts() })
	optest.BuildError(t, "concat", "operand 1 must be", func() { layout.ConcatInts(ns[4], ns[2]) })
	optest.BuildError(t, "gather", "two vectors", func() { layout.GatherInts(ns[4], ns[2]) })
}

// TestSampleNegativesAnyNoise checks that a row with a negative gets one, whatever
// the noise.
func TestSampleNegativesAnyNoise(t *testing.T) {
	for _, v := range []float64{math.Inf(-1), math.Inf(1), math.NaN()} {
		noise := slices.Repeat([]float32{float32(v)}, 9)
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegatives(ns[0], ns[1], nil, false, 0) },
			optest.In("logits", []int{3, 3}, make([]float32, 9)), optest.In("noise", []int{3, 3}, noise))
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
		m, byColumn, floor := b+r.IntN(4), r.IntN(2) == 0, []float64{0, 1e-4, .1}[r.IntN(3)]
		in := []optest.Input{optest.F32s(r, "logits", b, m), optest.F32s(r, "noise", b, b), optest.I32s("ids", optest.RandomInts(r, b, 6), b)}
		x, noise, ids := in[0].Data.([]float32), in[1].Data.([]float32), in[2].Data.([]int32)
		gumbel(r, noise)
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SampleNegatives(ns[0], ns[1], ns[2], byColumn, floor) }, in...)
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
				if v := math.Log(p+floor) + float64(noise[i*b+j]); ids[j] != ids[i] && v > best {
					best, at = v, j
				}
			}
			if int(got.I32[i]) != at {
				t.Fatalf("row %d of %d, byColumn %t: got %d, want %d", i, b, byColumn, got.I32[i], at)
			}
		}
	}
}
