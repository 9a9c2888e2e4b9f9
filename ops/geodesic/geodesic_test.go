package geodesic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
)

// scoresAndGradient runs the op: the scores, and the gradient of f for the gradient dy of
// the scores.
func (k *geoCase) scoresAndGradient(t testing.TB, dy []float32) (scores, grad []float32) {
	t.Helper()
	in := append(k.inputs(), optest.In("dy", []int{k.b, k.n}, dy))
	g, ns := optest.Nodes(in)
	s := k.build(ns)
	grads := check.Get(gorgonia.Grad(optest.Dot(s, ns[len(ns)-1]), ns[0]))(t)
	m := optest.Machine(t, g, ns, in, s, grads[0])
	check.OK(t, m.RunAll())
	for _, n := range []*gorgonia.Node{s, grads[0]} {
		a := check.Get(m.Value(n))(t)
		if scores == nil {
			scores = append(scores, a.F32...)
		} else {
			grad = append(grad, a.F32...)
		}
	}
	return scores, grad
}

// check compares scores and gradient with the definition.
func (k *geoCase) check(t testing.TB, r *rand.Rand, tol float64) {
	t.Helper()
	dy := optest.F32s(r, "dy", k.b, k.n).Data.([]float32)
	scores, grad := k.scoresAndGradient(t, dy)
	for i, want := range k.oracle().scores() {
		if !(math.Abs(float64(scores[i]-want)) <= tol) {
			t.Fatalf("score %d of row %d: got %v, want %v", i%k.n, i/k.n, scores[i], want)
		}
	}
	if want := k.oracle().gradient(dy); !close64(grad, want, 10*tol) {
		t.Errorf("gradient: got %v, want %v", grad, want)
	}
}

// TestGeodesicFuzz compares random cases of every combination of flags, shapes, wraps and
// counts with the definition and with its finite differences.
func TestGeodesicFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	for i := range 400 {
		k := randomGeoCase(r)
		if i%8 == 0 {
			k.count = 0
		}
		k.check(t, r, 2e-5)
		if t.Failed() {
			t.Fatalf("case %d: %+v", i, k)
		}
	}
}

// close64 says whether got and want agree to tol, relative to the largest of want or 1.
func close64(got, want []float32, tol float64) bool {
	largest := 1.0
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i]-v)) <= tol*largest) {
			return false
		}
	}
	return len(got) == len(want)
}

// TestAngleNormalisation holds scores worked by hand, at the ends of paths of these
// lengths; 13 and infinity are cut at 4 pi.
func TestAngleNormalisation(t *testing.T) {
	theta := []float32{.5, 1, 2, 6, 13, float32(math.Inf(1))}
	in := []optest.Input{
		optest.In("f", []int{1, 2}, []float32{1, 0}), optest.In("distances", []int{1, 6}, theta), optest.In("keys", []int{1, 2}, []float32{0, 1}), optest.In("queue", []int{7, 2}, make([]float32, 14)),
		optest.I32s("pointer", []int32{6}), optest.I32s("owner", []int32{0, 1, 2, 3, 4, 5, 0}, 7), optest.In("reach", []int{7}, make([]float32, 7)),
		optest.I32s("key owner", []int32{1}, 1), optest.In("key reach", []int{1}, []float32{1}), optest.I32s("count", []int32{6}),
	}
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return Geodesic(GeodesicArgs{F: ns[0], Distances: ns[1], Pool: pool.Pool{Keys: ns[2], Queue: ns[3], Pointer: ns[4]},
			Owner: ns[5], Reach: ns[6], KeyOwner: ns[7], KeyReach: ns[8], Count: ns[9], Limit: 4 * math.Pi})
	}, in...).F32
	optest.Near(t, "scores", got, []float32{.992198, .968912, .877583, .070737, -1, -1, .877583}, 1e-6)
}

// alignment returns a case of one row and a pool around several centres, the row's own
// key as its positive, and the gradient of the row under contrast at temperature .1.
func alignment(t *testing.T, r *rand.Rand, set func(k *geoCase)) (k *geoCase, grad []float32) {
	t.Helper()
	const n, clusters, width = 40, 5, 8
	k = &geoCase{b: 1, batch: 1, n: n, k: clusters, width: width, count: clusters, cols: -1, entries: 1, limit: 4 * math.Pi, pointer: r.IntN(n)}
	k.f, k.keys, k.queue, k.centres = optest.UnitRows(r, 1, width), optest.UnitRows(r, 1, width), optest.UnitRows(r, n, width), optest.UnitRows(r, clusters, width)
	k.owner, k.reach, k.paths = make([]int32, n), make([]float32, n), make([]float32, clusters*clusters)
	o := k.oracle()
	for j := range n {
		at, a := o.nearest(widen(k.queue[j*width : (j+1)*width]))
		k.owner[j], k.reach[j] = int32(at), float32(a)
	}
	for i := range clusters {
		for j := range clusters {
			if i != j {
				k.paths[i*clusters+j] = float32(angle(o.centre(i), o.centre(j)))
			}
		}
	}
	set(k)
	in := append(k.inputs(), optest.In("tau", nil, []float32{.1}), optest.I32s("labels", []int32{int32(k.pointer)}, 1))
	g, ns := optest.Nodes(in)
	loss := contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: arith.DivScalar(k.build(ns), ns[len(ns)-2]), Labels: ns[len(ns)-1]})
	grads := check.Get(gorgonia.Grad(loss, ns[0]))(t)
	m := optest.Machine(t, g, ns, in, grads[0])
	check.OK(t, m.RunAll())
	a := check.Get(m.Value(grads[0]))(t)
	return k, append(grad, a.F32...)
}

// cosine returns the cosine of the angle between x and y, 0 if one is 0.
func cosine(x, y []float64) float64 {
	if l := math.Sqrt(dot64(x, x) * dot64(y, y)); l > 0 {
		return dot64(x, y) / l
	}
	return 0
}

// TestStrictGradientIsParallelToTheNearestCentre shows the trap of eq. 3 taken literally
// every negative and the positive pull a row along one
// line, so nothing can draw it to its positive.
func TestStrictGradientIsParallelToTheNearestCentre(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 1))
	for range 20 {
		k, grad := alignment(t, r, func(*geoCase) {})
		at, _ := k.oracle().nearest(widen(k.f))
		if c := cosine(widen(grad), k.oracle().centre(at)); math.Abs(c) < 1-1e-6 {
			t.Errorf("the gradient %v has cosine %v with the nearest centre", grad, c)
		}
	}
}

// TestDefaultGradientIsNotParallel wants the gradient of same_cluster with
// straight_through off that line, and a step against it nearer to the positive.
func TestDefaultGradientIsNotParallel(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 2))
	for range 20 {
		k, grad := alignment(t, r, func(k *geoCase) { k.same, k.straight = true, true })
		at, _ := k.oracle().nearest(widen(k.f))
		if c := cosine(widen(grad), k.oracle().centre(at)); !(math.Abs(c) <= .95) {
			t.Errorf("the gradient has cosine %v with the nearest centre", c)
		}
		if c := cosine(widen(grad), widen(k.keys)); c > -.2 {
			t.Errorf("the gradient has cosine %v with the positive: a step does not draw the row to it", c)
		}
	}
}

// TestGeodesicOfEqualAndOppositeRows takes direct angles where the arc cosine's gradient
// is infinite.
func TestGeodesicOfEqualAndOppositeRows(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 3))
	k, _ := alignment(t, r, func(*geoCase) {})
	k.same, k.direct, k.centres = true, true, append([]float32(nil), k.centres...)
	for i, sign := range []float32{1, -1} {
		for c := range k.width {
			k.queue[i*k.width+c] = sign * k.f[c]
		}
		k.keys, k.pointer = k.queue[:k.width], 5
	}
	at, _ := k.oracle().nearest(widen(k.f))
	k.owner[0], k.owner[1] = int32(at), int32(at)
	for c := range k.width { // the row is its centre too
		k.centres[at*k.width+c] = k.f[c]
	}
	k.check(t, r, 2e-5)
}

// TestGeodesicOfBrokenRows wants NaN from a row, a key or a graph that is not finite,
// where it is read and nowhere else, in every mode.
func TestGeodesicOfBrokenRows(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for flags := range 16 {
			r := rand.New(rand.NewPCG(24, 4))
			k, _ := alignment(t, r, func(*geoCase) {})
			k.b, k.batch, k.f, k.keys = 2, 2, optest.UnitRows(r, 2, k.width), optest.UnitRows(r, 2, k.width)
			k.direct, k.same, k.straight = flags&1 != 0, flags&2 != 0, flags&4 != 0
			if flags&8 != 0 {
				k.entries, k.softness = 3, .1
			}
			k.pointer = k.n - 1 // key 0 is the last column, key 1 the first
			dy := optest.F32s(r, "dy", 2, k.n).Data.([]float32)
			k.f[0] = bad
			k.keys[0] = bad
			scores, grad := k.scoresAndGradient(t, dy)
			for at, s := range scores {
				if i, j := at/k.n, at%k.n; (s != s) != (i == 0 || j == k.n-1) {
					t.Fatalf("%v, flags %d: score %d of row %d is %v", bad, flags, j, i, s)
				}
			}
			if g := grad[0]; !k.straight && g == g {
				t.Errorf("%v, flags %d: the gradient of a row that is not finite is %v", bad, flags, g)
			}
		}
	}
}

func TestGeodesicErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 5))
	base := []optest.Input{
		optest.F32s(r, "f", 2, 3), optest.F32s(r, "distances", 2, 4), optest.F32s(r, "keys", 2, 3), optest.F32s(r, "queue", 5, 3), optest.I32s("pointer", []int32{0}),
		optest.I32s("owner", make([]int32, 5), 5), optest.F32s(r, "reach", 5), optest.I32s("key owner", make([]int32, 2), 2), optest.F32s(r, "key reach", 2),
		optest.I32s("count", []int32{4}), optest.I32s("nearest", make([]int32, 2), 2), optest.I32s("column ids", make([]int32, 5), 5), optest.F32s(r, "one key", 1, 3),
		optest.I32s("one owner", make([]int32, 1), 1), optest.F32s(r, "one reach", 1),
	}
	args := func(ns gorgonia.Nodes) GeodesicArgs {
		return GeodesicArgs{F: ns[0], Distances: ns[1], Pool: pool.Pool{Keys: ns[2], Queue: ns[3], Pointer: ns[4]}, Owner: ns[5], Reach: ns[6],
			KeyOwner: ns[7], KeyReach: ns[8], Count: ns[9], Nearest: ns[10], SameCluster: true, DirectPositives: true, Limit: 6}
	}
	for _, c := range []struct {
		want string
		set  func(a *GeodesicArgs, ns gorgonia.Nodes)
	}{
		{"operand F is missing", func(a *GeodesicArgs, _ gorgonia.Nodes) { a.F = nil }},
		{"operand Pool.Queue is missing", func(a *GeodesicArgs, _ gorgonia.Nodes) { a.Pool.Queue = nil }},
		{"SameCluster needs Nearest", func(a *GeodesicArgs, _ gorgonia.Nodes) { a.Nearest = nil }},
		{"ids must be given together", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.ColIDs = ns[11] }},
		{"limit must be above 0 (got 0)", func(a *GeodesicArgs, _ gorgonia.Nodes) { a.Limit = 0 }},
		{"limit must be above 0 (got NaN)", func(a *GeodesicArgs, _ gorgonia.Nodes) { a.Limit = float32(math.NaN()) }},
		{"want F (B, C) and distances (B, K)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Distances = ns[3] }},
		{"want distances (B, K)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Distances = ns[6] }},
		{"queue must have shape (N, 3)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Pool.Queue = ns[1] }},
		{"reach must have shape (5)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Reach = ns[8] }},
		{"owner must have shape (5)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Owner = ns[7] }},
		{"key reach must have shape (2)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.KeyReach = ns[6] }},
		{"nearest must have shape (2)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Nearest = ns[11] }},
		{"count must be a scalar", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Count = ns[10] }},
		{"columns of ids must have shape (7)", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.RowIDs, a.ColIDs = ns[10], ns[7] }},
		{"as many keys as rows", func(a *GeodesicArgs, ns gorgonia.Nodes) { a.Pool.Keys, a.KeyOwner, a.KeyReach = ns[12], ns[13], ns[14] }},
	} {
		_, ns := optest.Nodes(base)
		a := args(ns)
		c.set(&a, ns)
		optest.BuildError(t, c.want, c.want, func() { Geodesic(a) })
	}
	for _, c := range []struct {
		want string
		at   int
		data []int32
	}{
		{"pointer is -1: want [0, 5)", 4, []int32{-1}},
		{"column 3 belongs to centre 4: want [0, 4)", 5, []int32{0, 0, 0, 4, 0}},
		{"column 1 belongs to centre -1: want [0, 4)", 7, []int32{0, -1}},
		{"count is 5: want [0, 4]", 9, []int32{5}},
		{"cluster 4 of row 1: want [0, 4)", 10, []int32{0, 4}},
	} {
		in := append([]optest.Input(nil), base...)
		in[c.at].Data = c.data
		optest.RunError(t, c.want, func(ns gorgonia.Nodes) *gorgonia.Node { return Geodesic(args(ns)) }, in...)
	}
	optest.BuildError(t, "combine", "want arrays of one shape", func() { _, ns := optest.Nodes(base); arith.Combine([]float32{1, 1}, ns[0], ns[1]) })
}
