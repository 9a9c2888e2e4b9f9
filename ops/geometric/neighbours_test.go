package geometric

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// nearCase is a call of Neighbours.
type nearCase struct {
	b, q, width, filled, near, count int
	law                              string
	clusters, used, candidates       int // clusters 0: none
}

func (k nearCase) inputs(r *rand.Rand) []optest.Input {
	noise := optest.F32s(r, "noise", k.b, k.near)
	for i, v := range noise.Data.([]float32) {
		noise.Data.([]float32)[i] = min(max((v+1)/2, 1e-6), 1-1e-6)
	}
	in := []optest.Input{optest.F32s(r, "x", k.b, k.width), optest.F32s(r, "queue", k.q, k.width), optest.In("filled", nil, []int32{int32(k.filled)}), noise}
	if k.clusters == 0 {
		return in
	}
	paths := optest.F32s(r, "paths", k.clusters, k.clusters)
	for i := range k.clusters {
		for j := range i + 1 {
			d := 1 + paths.Data.([]float32)[i*k.clusters+j]
			if i == j {
				d = 0
			} else if r.IntN(4) == 0 {
				d = float32(math.Inf(1))
			}
			paths.Data.([]float32)[i*k.clusters+j], paths.Data.([]float32)[j*k.clusters+i] = d, d
		}
	}
	below := max(1, k.used)
	return append(in, optest.I32s("owner", optest.RandomInts(r, k.q, below), k.q), optest.I32s("own", optest.RandomInts(r, k.b, below), k.b), paths, optest.In("used", nil, []int32{int32(k.used)}))
}

func (k nearCase) build(ns gorgonia.Nodes) *gorgonia.Node {
	a := NeighbourArgs{X: ns[0], Queue: ns[1], Filled: ns[2], Noise: ns[3], Near: k.near, Count: k.count, Sampling: k.law}
	if k.clusters > 0 {
		a.Clusters = &NeighbourClusters{Owner: ns[4], Own: ns[5], Paths: ns[6], Used: ns[7], Candidates: k.candidates}
	}
	return Neighbours(a)
}

// candidates returns the rows that anchor a is compared with, by sorting.
func (k nearCase) rows(in []optest.Input, a int) (rows []int) {
	if k.clusters == 0 || k.used == 0 {
		for i := range k.filled {
			rows = append(rows, i)
		}
		return rows
	}
	own := int(in[5].Data.([]int32)[a])
	var order []int
	for c := range k.used {
		order = append(order, c)
	}
	path := func(c int) float32 {
		if c == own {
			return -1
		}
		return in[6].Data.([]float32)[own*k.clusters+c]
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(path(i), path(j)) })
	for _, c := range order {
		for i, o := range in[4].Data.([]int32)[:k.filled] {
			if int(o) == c {
				rows = append(rows, i)
			}
		}
	}
	return rows[:min(len(rows), k.candidates)]
}

// cosines returns those of anchor a with the queue, in float64.
func (k nearCase) cosines(in []optest.Input, a int) []float64 {
	x, cos := in[0].Data.([]float32)[a*k.width:(a+1)*k.width], make([]float64, k.q)
	for i := range cos {
		var dot, xx, yy float64
		for c, v := range in[1].Data.([]float32)[i*k.width : (i+1)*k.width] {
			dot, xx, yy = dot+float64(v)*float64(x[c]), xx+float64(x[c])*float64(x[c]), yy+float64(v)*float64(v)
		}
		cos[i] = dot / math.Sqrt(xx*yy)
	}
	return cos
}

// want sorts the candidates of every anchor and draws. It returns false where cosines are
// so near that rounding may order them otherwise.
func (k nearCase) want(in []optest.Input) (out []int32, sure bool) {
	for a := range k.b {
		if k.filled < k.near {
			out = append(out, slices.Repeat([]int32{-1}, k.count)...)
			continue
		}
		rows, cos := k.rows(in, a), k.cosines(in, a)
		slices.SortStableFunc(rows, func(i, j int) int { return cmp.Or(cmp.Compare(cos[j], cos[i]), cmp.Compare(i, j)) })
		for i := range min(k.near, len(rows)-1) {
			if d := cos[rows[i]] - cos[rows[i+1]]; d < 1e-6 {
				return nil, false
			}
		}
		for _, rank := range sample(k.law, in[3].Data.([]float32)[a*k.near:(a+1)*k.near], k.count) {
			out = append(out, int32(rows[rank]))
		}
	}
	return out, true
}

func TestNeighboursAgainstSort(t *testing.T) {
	for _, k := range []nearCase{
		{b: 3, q: 20, width: 5, filled: 20, near: 8, count: 3},
		{b: 3, q: 20, width: 5, filled: 8, near: 8, count: 8},
		{b: 3, q: 20, width: 5, filled: 7, near: 8, count: 3},
		{b: 1, q: 1, width: 1, filled: 1, near: 1, count: 1},
		{b: 5, q: 300, width: 33, filled: 231, near: 40, count: 9},
		{b: neighbourAnchors + 4, q: 70, width: 9, filled: 70, near: 6, count: 2},
		{b: 2, q: neighbourColumns + 100, width: 24, filled: neighbourColumns + 77, near: 20, count: 5},
		{b: 6, q: 300, width: 33, filled: 231, near: 12, count: 4, clusters: 9, used: 9, candidates: 60},
		{b: 6, q: 300, width: 33, filled: 231, near: 12, count: 4, clusters: 9, used: 7, candidates: 12},
		{b: 6, q: 300, width: 33, filled: 231, near: 12, count: 4, clusters: 9, used: 9, candidates: 1000},
		{b: 6, q: 300, width: 33, filled: 231, near: 12, count: 4, clusters: 9, used: 0, candidates: 60},
		{b: 6, q: 300, width: 33, filled: 11, near: 12, count: 4, clusters: 9, used: 9, candidates: 60},
	} {
		for _, law := range []string{Closest, Uniform, Biased} {
			k.law = law
			t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
				sure := 0
				for seed := range uint64(4) {
					in := k.inputs(rand.New(rand.NewPCG(51, seed)))
					want, ok := k.want(in)
					if !ok {
						continue
					}
					sure++
					if got := optest.Eval(t, k.build, in...).I32; !slices.Equal(got, want) {
						t.Fatalf("seed %d: got %v, want %v", seed, got, want)
					}
				}
				if sure == 0 {
					t.Error("all seeds have cosines that are too near to compare")
				}
			})
		}
	}
}

// TestNeighboursOfEqualRows has rows of one direction, with exact products: the lower
// number is nearer.
func TestNeighboursOfEqualRows(t *testing.T) {
	in := []optest.Input{
		optest.In("x", tensor.Shape{1, 2}, []float32{3, 0}),
		optest.In("queue", tensor.Shape{6, 2}, []float32{0, 1, 2, 0, 1, 0, 0, 0, -1, 0, 4, 0}),
		optest.In("filled", nil, []int32{6}), optest.In("noise", tensor.Shape{1, 6}, make([]float32, 6)),
	}
	k := nearCase{near: 6, count: 6, law: Closest}
	if got, want := optest.Eval(t, k.build, in...).I32, []int32{1, 2, 5, 0, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNeighboursNotFinite puts rows that are not finite behind all others, and lets
// anchors and noise be anything.
func TestNeighboursNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, clusters := range []int{0, 3} {
		k := nearCase{b: 3, q: 12, width: 4, filled: 12, near: 12, count: 12, law: Biased, clusters: clusters, used: clusters, candidates: 12}
		in := k.inputs(rand.New(rand.NewPCG(52, 1)))
		in[1].Data.([]float32)[2*4], in[1].Data.([]float32)[7*4+1] = nan, inf
		copy(in[0].Data.([]float32)[8:], []float32{inf, nan, -inf, 0})
		copy(in[3].Data.([]float32), []float32{nan, 0, 1, inf, -inf, -1, 2})
		got := optest.Eval(t, k.build, in...).I32
		for a := range 2 {
			if row := got[a*12 : (a+1)*12]; !slices.Equal(row[10:], []int32{2, 7}) {
				t.Errorf("%d clusters: got %v, want rows 2 and 7 last", clusters, row)
			}
		}
		all := slices.Sorted(slices.Values(got[24:]))
		if len(slices.Compact(all)) != 12 || all[0] != 0 || all[11] != 11 {
			t.Errorf("%d clusters: an anchor that is not finite has neighbours %v", clusters, got[24:])
		}
	}
}

func TestNeighboursErrors(t *testing.T) {
	k := nearCase{b: 4, q: 9, width: 5, filled: 9, near: 5, count: 2, law: Biased, clusters: 3, used: 3, candidates: 6}
	for _, c := range []struct {
		name, want string
		set        func(k *nearCase, in []optest.Input)
	}{
		{"law", "unknown sampling", func(k *nearCase, _ []optest.Input) { k.law = "nearest" }},
		{"count", "count <= near", func(k *nearCase, _ []optest.Input) { k.count = 6 }},
		{"no count", "0 < count", func(k *nearCase, _ []optest.Input) { k.count = 0 }},
		{"candidates", "candidates must be at least near", func(k *nearCase, _ []optest.Input) { k.candidates = 4 }},
		{"near", "cannot hold the nearest 10", func(k *nearCase, _ []optest.Input) { k.near, k.candidates = 10, 10 }},
		{"width", "want anchors", func(_ *nearCase, in []optest.Input) { in[1].Shape = tensor.Shape{9, 4} }},
		{"noise", "noise must have shape", func(_ *nearCase, in []optest.Input) { in[3].Shape = tensor.Shape{4, 4} }},
		{"owner", "owner must have shape", func(_ *nearCase, in []optest.Input) { in[4].Shape = tensor.Shape{8} }},
		{"own", "own clusters must have shape", func(_ *nearCase, in []optest.Input) { in[5].Shape = tensor.Shape{3} }},
		{"paths", "paths must have shape (K, K)", func(_ *nearCase, in []optest.Input) { in[6].Shape = tensor.Shape{3, 2} }},
		{"used", "used must have shape", func(_ *nearCase, in []optest.Input) { in[7].Shape = tensor.Shape{1} }},
		{"filled", "filled must have shape", func(_ *nearCase, in []optest.Input) { in[2].Shape = tensor.Shape{1} }},
	} {
		k, in := k, k.inputs(rand.New(rand.NewPCG(53, 1)))
		c.set(&k, in)
		_, ns := optest.Nodes(in)
		optest.BuildError(t, c.name, c.want, func() { k.build(ns) })
	}
	_, ns := optest.Nodes(k.inputs(rand.New(rand.NewPCG(53, 1))))
	optest.BuildError(t, "without noise", "Noise is missing", func() {
		Neighbours(NeighbourArgs{X: ns[0], Queue: ns[1], Filled: ns[2], Near: 5, Count: 2, Sampling: Uniform})
	})
	for _, c := range []struct {
		at, i int
		v     int32
		want  string
	}{{2, 0, 10, "filled is 10"}, {2, 0, -1, "filled is -1"}, {4, 3, 3, "cluster 3 of row 3"}, {5, 1, -1, "cluster -1 of anchor 1"}, {7, 0, 4, "4 centres"}} {
		in := k.inputs(rand.New(rand.NewPCG(53, 1)))
		in[c.at].Data.([]int32)[c.i] = c.v
		optest.RunError(t, c.want, k.build, in...)
	}
}

// TestNearestHeap keeps the best of random items with many equal values, in any order.
func TestNearestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(54, 1))
	for range 200 {
		n := 1 + r.IntN(40)
		keep := 1 + r.IntN(n)
		values := make([]float32, n)
		order := r.Perm(n)
		for i := range values {
			values[i] = float32(r.IntN(6))
		}
		h := nearest{value: make([]float32, keep), index: make([]int32, keep)}
		for _, i := range order {
			h.push(values[i], int32(i))
		}
		h.sort()
		slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(values[j], values[i]), cmp.Compare(i, j)) })
		for i, want := range order[:keep] {
			if int(h.index[i]) != want {
				t.Fatalf("got %v, want %v", h.index, order[:keep])
			}
		}
	}
}
