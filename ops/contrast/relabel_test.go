package contrast

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

func hardestPair(ns gorgonia.Nodes) *gorgonia.Node {
	var ids *gorgonia.Node
	if len(ns) > 1 {
		ids = ns[1]
	}
	first, second := HardestNegatives(ns[0], ids)
	return layout.ConcatInts(first, second)
}

// TestHardestNegatives has rows worked out by hand: own columns and columns of the queue
// do not count, ties go to the first, NaN is never hardest, and a row may have one
// negative or none.
func TestHardestNegatives(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	logits := optest.In("logits", []int{4, 5}, []float32{
		9, 1, 3, 2, 99,
		5, 9, 5, 5, 99,
		nan, -inf, 9, nan, 99,
		1, inf, 2, inf, 99,
	})
	if got, want := optest.Eval(t, hardestPair, logits).I32, []int32{2, 0, 1, 1, 3, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// With ids 0 and 2 belong together, so do 1 and 3.
	ids := optest.I32s("ids", []int32{7, 8, 7, 8}, 4)
	if got, want := optest.Eval(t, hardestPair, logits, ids).I32, []int32{3, 0, 1, 2, 1, 2, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("with ids: got %v, want %v", got, want)
	}
	// One id alone leaves no negative.
	if got, want := optest.Eval(t, hardestPair, logits, optest.I32s("ids", []int32{7, 7, 7, 7}, 4)).I32, []int32{0, 1, 2, 3, 0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("of one id: got %v, want %v", got, want)
	}
}

// TestHardestNegativesFuzz sorts the candidates of each row.
func TestHardestNegativesFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	for range 40 {
		b, q := 1+r.IntN(12), r.IntN(6)
		x, ids := optest.F32s(r, "logits", b, b+q), optest.RandomInts(r, b, 1+r.IntN(8))
		for i := range x.Floats() {
			x.Floats()[i] = float32(r.IntN(6)) // ties
		}
		want := make([]int32, 2*b)
		for i := range b {
			var at []int
			for j := range b {
				if ids[j] != ids[i] {
					at = append(at, j)
				}
			}
			row := x.Floats()[i*(b+q):]
			sort.SliceStable(at, func(k, l int) bool { return row[at[k]] > row[at[l]] })
			at = append(at, i, i)
			if at[0] == i {
				at[1] = i
			}
			want[i], want[b+i] = int32(at[0]), int32(at[1])
		}
		if got := optest.Eval(t, hardestPair, x, optest.I32s("ids", ids, b)).I32; !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// logit returns the difference of the two logits that gives probability p.
func logit(p float64) float32 { return float32(math.Log(p / (1 - p))) }

// TestRelabel goes through both bounds, a row without a negative and one without a
// second hardest.
func TestRelabel(t *testing.T) {
	p := []float64{.9, .81, .79, .51, .49, .1, .9, .6, .6}
	first := []int32{1, 2, 3, 4, 5, 6, 6, 8, 0}
	second := []int32{2, 3, 4, 5, 6, 7, 6, 7, 1} // row 6 has no negative, row 7 one only
	logits := make([]float32, 2*len(p))
	for i, v := range p {
		logits[2*i] = float32(i)
		logits[2*i+1] = float32(i) + logit(v)
	}
	n := len(p)
	in := []optest.Input{optest.I32s("first", first, n), optest.I32s("second", second, n), optest.In("logits", []int{n, 2}, logits)}
	for _, c := range []struct {
		what string
		pick func(Relabelled) *gorgonia.Node
		want []int32
	}{
		{"index", func(r Relabelled) *gorgonia.Node { return r.Index }, []int32{1, 2, 4, 5, 5, 6, 6, 7, 1}},
		{"labels", func(r Relabelled) *gorgonia.Node { return r.Labels }, []int32{1, 1, 0, 0, 0, 0, -100, -100, 0}},
		{"positive", func(r Relabelled) *gorgonia.Node { return r.Positive }, []int32{1, 2, -1, -1, -1, -1, -1, -1, -1}},
	} {
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			return layout.ConcatInts(c.pick(Relabel(ns[0], ns[1], ns[2], .8, .5)))
		}
		if got := optest.Eval(t, build, in...).I32; !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
	counts := func(ns gorgonia.Nodes) *gorgonia.Node {
		r := Relabel(ns[0], ns[1], ns[2], .8, .5)
		return arith.WeightedSum([]float32{100, 1}, r.Positives, r.Replaced)
	}
	optest.Near(t, "100 positives + replaced", optest.Eval(t, counts, in...).F32, []float32{204}, 0)
}

func TestRelabelErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 3, 2), optest.I32s("a", make([]int32, 3), 3), optest.I32s("b", make([]int32, 2), 2)})
	optest.BuildError(t, "logits", "M >= B", func() { HardestNegatives(ns[0], nil) })
	optest.BuildError(t, "bounds", "lower bound", func() { Relabel(ns[1], ns[1], ns[0], .3, .5) })
	optest.BuildError(t, "second", "second hardest must have shape (3)", func() { Relabel(ns[1], ns[2], ns[0], .8, .5) })
	optest.BuildError(t, "pairs", "logits must have shape (2, 2)", func() { Relabel(ns[2], ns[2], ns[0], .8, .5) })
}

func TestLookUpColumns(t *testing.T) {
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return LookUpColumns(ns[0], ns[1]) }
	columns := optest.I32s("columns", []int32{8, 9, 0, 1}, 4)
	got := optest.Eval(t, build, columns, optest.I32s("idx", []int32{3, -1, 0, -100, 1}, 5)).I32
	if want := []int32{1, -1, 8, -1, 9}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	in := []optest.Input{columns, optest.I32s("idx", []int32{4}, 1)}
	g, ns := optest.Nodes(in)
	if err := optest.Machine(t, g, ns, in, build(ns)).RunAll(); err == nil {
		t.Error("an index of 4 in 4 columns is no error")
	}
	_, ns = optest.Nodes([]optest.Input{optest.F32s(rand.New(rand.NewPCG(1, 2)), "x", 3, 2), columns})
	optest.BuildError(t, "a matrix", "want two vectors", func() { LookUpColumns(ns[1], ns[0]) })
}
