package nn

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// columnsOf calls see with the values of each channel of each of the sequences that count.
func columnsOf(x []float32, lengths []int32, l, d int, see func(b, j int, values []float64)) {
	for b, n := range lengths {
		for j := range d {
			var values []float64
			for k := range int(n) {
				values = append(values, float64(x[(b*l+k)*d+j]))
			}
			see(b, j, values)
		}
	}
}

// TestMaxTokens compares the largest values with the definition, and gradients with finite differences.
func TestMaxTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 21))
	for _, s := range append(optest.RandomShapes(r, 12, 7, 9, 20), []int{2, 40, 3}) {
		rows, l, d := s[0], s[1], s[2]
		x, lengths := optest.F32s(r, "x", rows*l, d), optest.RandomInts(r, rows, l+1)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return MaxTokens(ns[0], ns[1], l) }
		want := make([]float32, rows*d)
		columnsOf(x.Floats(), lengths, l, d, func(b, j int, values []float64) {
			if len(values) > 0 {
				want[b*d+j] = float32(slices.Max(values))
			}
		})
		in := []optest.Input{x, optest.I32s("lengths", lengths, rows)}
		if got := optest.Eval(t, build, in...).F32; !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", s, got, want)
		}
		optest.CheckGrad(t, build, []int{0}, 1e-5, 2e-2, in...)
	}
	pooledErrors(t, func(x, lengths *gorgonia.Node, l int) *gorgonia.Node { return MaxTokens(x, lengths, l) })
}

// TestSortPool compares values with the definition, which sorts in another way, and gradients with finite differences.
func TestSortPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 22))
	for _, s := range append(optest.RandomShapes(r, 12, 7, 9, 20), []int{2, 40, 3}) {
		rows, l, d := s[0], s[1], s[2]
		const temperature = .5
		x, scores, lengths := optest.F32s(r, "x", rows*l, d), optest.F32s(r, "scores", rows*l, 1), optest.RandomInts(r, rows, l+1)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return SortPool(ns[0], ns[1], ns[2], l, temperature) }
		want := make([]float32, rows*d)
		columnsOf(x.Floats(), lengths, l, d, func(b, j int, values []float64) {
			slices.Sort(values)
			slices.Reverse(values)
			var top, sum float64
			for k, v := range values {
				w := math.Exp(float64(scores.Floats()[b*l+k]) / temperature)
				top, sum = top+w*v, sum+w
			}
			if sum > 0 {
				want[b*d+j] = float32(top / sum)
			}
		})
		in := []optest.Input{x, scores, optest.I32s("lengths", lengths, rows)}
		optest.Near(t, "sort pool", optest.Eval(t, build, in...).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0}, 1e-5, 2e-2, in...)
		optest.CheckGrad(t, build, []int{1}, 1e-2, 1e-2, in...)
	}
	pooledErrors(t, func(x, lengths *gorgonia.Node, l int) *gorgonia.Node { return SortPool(x, x, lengths, l, 1) })
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 6, 2), optest.F32s(r, "scores", 6, 1), optest.I32s("lengths", make([]int32, 2), 2)})
	optest.BuildError(t, "scores", "scores must have shape (6, 1)", func() { SortPool(ns[0], ns[0], ns[2], 3, 1) })
	optest.BuildError(t, "temperature", "temperature must be positive (got 0)", func() { SortPool(ns[0], ns[1], ns[2], 3, 0) })
}

// TestSoftPool compares values with the definition, and gradients with finite differences, also of scores that overflow
// without their largest.
func TestSoftPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 25))
	for i, s := range append(optest.RandomShapes(r, 12, 7, 9, 20), []int{2, 40, 3}) {
		rows, l, d := s[0], s[1], s[2]
		x, scores, lengths := optest.F32s(r, "x", rows*l, d), optest.F32s(r, "scores", rows*l, d), optest.RandomInts(r, rows, l+1)
		if i%3 == 0 {
			for k := range scores.Floats() {
				scores.Floats()[k] += 200
			}
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return SoftPool(ns[0], ns[1], ns[2], l) }
		want := make([]float32, rows*d)
		for b, n := range lengths {
			for j := range d {
				var top, sum float64
				for k := range int(n) {
					w := math.Exp(float64(scores.Floats()[(b*l+k)*d+j]) - 200)
					top, sum = top+w*float64(x.Floats()[(b*l+k)*d+j]), sum+w
				}
				if sum > 0 {
					want[b*d+j] = float32(top / sum)
				}
			}
		}
		in := []optest.Input{x, scores, optest.I32s("lengths", lengths, rows)}
		optest.Near(t, "soft pool", optest.Eval(t, build, in...).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-2, in...)
	}
	pooledErrors(t, func(x, lengths *gorgonia.Node, l int) *gorgonia.Node { return SoftPool(x, x, lengths, l) })
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 6, 2), optest.F32s(r, "scores", 6, 1), optest.I32s("lengths", make([]int32, 2), 2)})
	optest.BuildError(t, "scores", "scores must have the shape (6, 2) of x", func() { SoftPool(ns[0], ns[1], ns[2], 3) })
}

// TestSortPoolTies: equal values keep their order, so that gradients go to the first of them first.
func TestSortPoolTies(t *testing.T) {
	x, scores := optest.In("x", []int{3, 1}, []float32{2, 5, 2}), optest.In("scores", []int{3, 1}, []float32{0, 0, 1})
	grads, _ := optest.Gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SortPool(ns[0], ns[1], ns[2], 3, 1) }, []int{0},
		x, scores, optest.I32s("lengths", []int32{3}, 1))
	if g := grads[0]; g[1] != g[0] || !(math.Abs(float64(g[2]/g[0])-math.E) <= 1e-5) {
		t.Errorf("gradients %v, want those of ranks 1, 0 and 2", g)
	}
}

// pooledErrors: shapes and lengths that do not fit are refused.
func pooledErrors(t *testing.T, pool func(x, lengths *gorgonia.Node, l int) *gorgonia.Node) {
	t.Helper()
	x := optest.F32s(rand.New(rand.NewPCG(1, 23)), "x", 6, 1)
	_, ns := optest.Nodes([]optest.Input{x, optest.I32s("lengths", make([]int32, 2), 2), optest.F32s(rand.New(rand.NewPCG(1, 24)), "y", 6)})
	for want, build := range map[string]func(){
		"rows must be a multiple of 4":  func() { pool(ns[0], ns[1], 4) },
		"sequences of at least one row": func() { pool(ns[0], ns[1], 0) },
		"lengths must have shape (3)":   func() { pool(ns[0], ns[1], 2) },
		"want x (B*l, D)":               func() { pool(ns[2], ns[1], 3) },
	} {
		optest.BuildError(t, want, want, build)
	}
	for _, n := range []int32{4, -1} {
		optest.RunError(t, "lengths[1] is", func(ns gorgonia.Nodes) *gorgonia.Node { return pool(ns[0], ns[1], 3) }, x, optest.I32s("lengths", []int32{3, n}, 2))
	}
}

// TestSinusoids writes out a small table.
func TestSinusoids(t *testing.T) {
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Sinusoids(ns[0], 3, 4) }, optest.I32s("like", []int32{7, 8}, 2)).F32
	var want []float32
	for range 2 {
		for p := range 3 {
			x := float64(p)
			want = append(want, float32(math.Sin(x)), float32(math.Cos(x)), float32(math.Sin(x/100)), float32(math.Cos(x/100)))
		}
	}
	optest.Near(t, "sinusoids", got, want, 1e-7)
	_, ns := optest.Nodes([]optest.Input{optest.I32s("like", []int32{7, 8}, 2)})
	optest.BuildError(t, "odd", "even number of channels (got 2 and 3)", func() { Sinusoids(ns[0], 2, 3) })
}

// TestLogPlaces weighs the words of two texts by their numbers, as sentence-transformers' weightedmean does.
func TestLogPlaces(t *testing.T) {
	x := optest.In("x", []int{8, 2}, []float32{1, 10, 2, 20, 4, 40, 99, 99, 5, -5, 77, 77, 77, 77, 77, 77})
	lengths := optest.I32s("lengths", []int32{3, 1}, 2)
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return SoftPool(ns[0], LogPlaces(ns[1], 4, 2), ns[1], 4)
	}, x, lengths).F32
	optest.Near(t, "weighted mean", got, []float32{17. / 6, 170. / 6, 5, -5}, 1e-5)
	_, ns := optest.Nodes([]optest.Input{lengths})
	optest.BuildError(t, "no places", "places and channels", func() { LogPlaces(ns[0], 0, 3) })
}

// Columns are sorted as a stable sort does, whatever their number of rows.
func TestSortColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 70 {
		const d = 19
		x, order := make([]float32, n*d), make([]int32, n*d)
		for i := range x {
			x[i] = float32(r.IntN(1 + n/2)) // with ties
		}
		was := slices.Clone(x)
		sortColumns(x, order, n, d)
		for j := range d {
			want := make([]int32, n)
			for i := range want {
				want[i] = int32(i)
			}
			slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(was[int(b)*d+j], was[int(a)*d+j]) })
			for k, i := range want {
				if order[k*d+j] != i || x[k*d+j] != was[int(i)*d+j] {
					t.Fatalf("%d rows, column %d, rank %d: %v of row %d, want row %d", n, j, k, x[k*d+j], order[k*d+j], i)
				}
			}
		}
	}
}
