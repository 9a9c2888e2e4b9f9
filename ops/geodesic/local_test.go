package geodesic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// testLocals are the metrics beside the angle on one sphere.
var testLocals = []struct {
	name  string
	local local
}{
	{"two spheres", local{space.Space{Spheres: 2}}},
	{"four spheres", local{space.Space{Spheres: 4}}},
	{"Euclid", local{space.Space{Euclid: true}}},
	{"one sphere", local{space.Space{Spheres: 1}}},
	{"many spheres", local{space.Space{Spheres: 40}}}, // more than are worked on at once
}

// points returns n rows of width values that are features of the metric.
func (l local) points(r *rand.Rand, n, width int) []float32 {
	if l.Euclid {
		x := make([]float32, n*width)
		for i := range x {
			x[i] = 3 + float32(r.NormFloat64())
		}
		return x
	}
	m := max(l.Spheres, 1)
	return optest.UnitRows(r, n*m, width/m)
}

// withLocal makes the points of k those of the metric.
func (k *geoCase) withLocal(r *rand.Rand, l local) *geoCase {
	k.local = l
	if m := max(l.Spheres, 1); m > 1 {
		k.width = m * (5 + r.IntN(4))
	}
	k.f, k.keys, k.queue, k.centres = l.points(r, k.b, k.width), l.points(r, k.batch, k.width), l.points(r, k.n, k.width), l.points(r, k.k, k.width)
	if l.Spheres > 4 {
		k.limit *= 4
	}
	return k
}

func TestGeodesicOfLocalMetricsFuzz(t *testing.T) {
	for _, c := range testLocals {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(31, uint64(c.local.Spheres)))
			for i := range 100 / max(c.local.Spheres, 1) {
				k := randomGeoCase(r).withLocal(r, c.local)
				if i%8 == 0 {
					k.count = 0
				}
				k.check(t, r, 2e-5)
				if t.Failed() {
					t.Fatalf("case %d: %+v", i, k)
				}
			}
		})
	}
}

// TestGeodesicModesOfLocalMetrics goes through every mode in turn, each with and without
// ids, cut paths and a graph.
func TestGeodesicModesOfLocalMetrics(t *testing.T) {
	for _, c := range testLocals[:3] {
		for flags := range 64 {
			r := rand.New(rand.NewPCG(32, uint64(flags)))
			k := sizeableGeoCase(r)
			k.b, k.batch, k.pointer, k.count, k.cols = 4, 5, k.n-2, k.k, k.n-3 // wraps; one key lies beyond the columns
			k.withLocal(r, c.local)
			k.same, k.direct, k.straight = flags&1 != 0, flags&2 != 0, flags&4 != 0
			k.entries, k.softness, k.rowIDs, k.colIDs = 1, 0, nil, nil
			if flags&8 != 0 {
				k.entries, k.softness = 3, .2
			}
			if flags&16 != 0 {
				k.rowIDs, k.colIDs = optest.RandomInts(r, k.b, 4), optest.RandomInts(r, k.n, 4)
			}
			k.limit = 9
			if flags&32 != 0 {
				k.limit = 2.5
			}
			k.check(t, r, 2e-5)
			if t.Failed() {
				t.Fatalf("%s, flags %b: %+v", c.name, flags, k)
			}
		}
	}
}

func TestNearestCentreOfLocalMetrics(t *testing.T) {
	for _, c := range testLocals {
		r := rand.New(rand.NewPCG(33, 1))
		for range 40 {
			k := randomGeoCase(r).withLocal(r, c.local)
			index, distance := nearestCentres(t, k.queue, k.centres, k.width, k.count, c.local)
			for j := range k.n {
				at, want := k.oracle().nearest(widen(k.queue[j*k.width : (j+1)*k.width]))
				if int(index[j]) != at || !(math.Abs(float64(distance[j])-want) <= 1e-5) {
					t.Fatalf("%s: row %d of %+v: got centre %d at %v, want %d at %v", c.name, j, k, index[j], distance[j], at, want)
				}
			}
		}
	}
}

// TestNearestCentreFarFromTheOrigin moves Euclidean rows and centres together, which must
// not change what is nearest: by products alone the differences of the distances would be
// lost beside the squared lengths.
func TestNearestCentreFarFromTheOrigin(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 2))
	const rows, clusters, width = 300, 40, 16
	for _, offset := range []float32{0, 10, 300} {
		x, centres := make([]float32, rows*width), make([]float32, clusters*width)
		for i := range x {
			x[i] = offset + float32(r.NormFloat64())
		}
		for i := range centres {
			centres[i] = offset + float32(r.NormFloat64())
		}
		local := local{space.Space{Euclid: true}}
		index, distance := nearestCentres(t, x, centres, width, clusters, local)
		for j := range rows {
			p, best := widen(x[j*width:(j+1)*width]), math.Inf(1)
			for m := range clusters {
				best = min(best, local.oracleDistance(p, widen(centres[m*width:(m+1)*width])))
			}
			own := int(index[j])
			if d := local.oracleDistance(p, widen(centres[own*width:(own+1)*width])); d > best*(1+1e-5) || !(math.Abs(d-float64(distance[j])) <= 1e-5*d) {
				t.Fatalf("offset %v, row %d: centre %d at %v (got %v), the nearest is at %v", offset, j, own, d, distance[j], best)
			}
		}
	}
}

// TestNearestCentreOfBrokenRows wants NaN from rows that are not finite.
func TestNearestCentreOfBrokenRows(t *testing.T) {
	for _, c := range testLocals[:3] {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			r := rand.New(rand.NewPCG(33, 3))
			const width = 200
			x, centres := c.local.points(r, 3, width), c.local.points(r, 5, width)
			x[width+7] = bad
			_, distance := nearestCentres(t, x, centres, width, 5, c.local)
			for j, d := range distance {
				if (d != d) != (j == 1) {
					t.Errorf("%s, %v: distance of row %d is %v", c.name, bad, j, d)
				}
			}
		}
	}
}

func TestCentreDistancesOfLocalMetrics(t *testing.T) {
	for _, c := range testLocals[:4] {
		r := rand.New(rand.NewPCG(34, 1))
		for range 60 {
			k := randomGeoCase(r).withLocal(r, c.local)
			in := []optest.Input{optest.In("x", []int{k.b, k.width}, k.f), optest.In("centres", []int{k.k, k.width}, k.centres), optest.In("paths", []int{k.k, k.k}, k.paths), optest.I32s("count", []int32{int32(k.count)}), optest.F32s(r, "dy", k.b, k.k)}
			g, ns := optest.Nodes(in)
			e := CentreDistances(EntryArgs{X: ns[0], Centres: ns[1], Paths: ns[2], Count: ns[3], Entries: k.entries, Softness: k.softness, Space: c.local.Space})
			grads := check.Get(gorgonia.Grad(optest.Dot(e, ns[4]), ns[0]))(t)
			m := optest.Machine(t, g, ns, in, e, grads[0])
			check.OK(t, m.RunAll())
			got, grad := valueOf(t, m, e), valueOf(t, m, grads[0])
			o, dy := k.oracle(), in[4].Data.([]float32)
			for i := range k.b {
				for j := range k.k {
					want := math.Inf(1)
					if j < k.count {
						want = o.distance(o.f[i*k.width:(i+1)*k.width], j)
					}
					if v := float64(got.F32[i*k.k+j]); v != want && !(math.Abs(v-want) <= 2e-5) {
						t.Fatalf("%s: distance of row %d and centre %d of %+v: got %v, want %v", c.name, i, j, k, v, want)
					}
				}
			}
			loss := func(i int) (s float64) {
				for j := range k.count {
					if d := o.distance(o.f[i*k.width:(i+1)*k.width], j); !math.IsInf(d, 1) {
						s += d * float64(dy[i*k.k+j])
					}
				}
				return s
			}
			want := make([]float32, len(o.f))
			for at, old := range o.f {
				const eps = 1e-6
				o.f[at] = old + eps
				up := loss(at / k.width)
				o.f[at] = old - eps
				down := loss(at / k.width)
				o.f[at] = old
				want[at] = float32((up - down) / (2 * eps))
			}
			if !close64(grad.F32, want, 1e-4) {
				t.Fatalf("%s: gradient of %+v: got %v, want %v", c.name, k, grad.F32, want)
			}
		}
	}
}

// valueOf returns the result of a node.
func valueOf(t testing.TB, m *exec.Machine, n *gorgonia.Node) exec.Array {
	t.Helper()
	return check.Get(m.Value(n))(t)
}

// TestLocalDistanceVectors holds distances by hand: two spheres at angles pi/2 and pi/3,
// whose root of squares is pi*sqrt(13)/6; and the Euclidean (3, 4).
func TestLocalDistanceVectors(t *testing.T) {
	s := float32(math.Sqrt(3) / 2)
	for _, c := range []struct {
		x, y  []float32
		local local
		want  float64
	}{
		{[]float32{1, 0, 1, 0}, []float32{0, 1, .5, s}, local{space.Space{Spheres: 2}}, math.Pi * math.Sqrt(13) / 6},
		{[]float32{1, 0, 1, 0}, []float32{0, 1, .5, s}, local{space.Space{Euclid: true}}, math.Sqrt(3)},
		{[]float32{1, 2}, []float32{4, 6}, local{space.Space{Euclid: true}}, 5},
		{[]float32{1, 0, 0, 1}, []float32{1, 0, 0, 1}, local{space.Space{Spheres: 2}}, math.Sqrt2 * math.Acos(float64(float32(vector.AcosLimit)))},
		{[]float32{1, 0, 0, 1}, []float32{-1, 0, 0, -1}, local{space.Space{Spheres: 2}}, math.Sqrt2 * (math.Pi - math.Acos(float64(float32(vector.AcosLimit))))},
		{[]float32{7, 8}, []float32{7, 8}, local{space.Space{Euclid: true}}, 0},
	} {
		_, d := nearestCentres(t, c.x, c.y, len(c.x), 1, c.local)
		if !(math.Abs(float64(d[0])-c.want) <= 1e-5) {
			t.Errorf("%v to %v on %+v: got %v, want %v", c.x, c.y, c.local, d[0], c.want)
		}
	}
}

// TestGeodesicOfEqualAndOppositePoints takes direct distances and entries where the arc
// cosine and the root have infinite slopes: at equal and opposite points, and where only
// some spheres are.
func TestGeodesicOfEqualAndOppositePoints(t *testing.T) {
	for _, c := range testLocals[:3] {
		for flags := range 16 {
			r := rand.New(rand.NewPCG(35, uint64(flags)))
			k := sizeableGeoCase(r)
			k.b, k.batch, k.pointer, k.count, k.cols, k.entries, k.limit = 2, 3, 5, k.k, -1, 1, 9
			k.rowIDs, k.colIDs = nil, nil
			k.withLocal(r, c.local)
			k.same, k.direct, k.straight = flags&1 != 0, flags&2 != 0, flags&4 != 0
			if flags&8 != 0 {
				k.entries, k.softness = 3, .2
			}
			row, half := k.f[:k.width], k.width/2
			copy(k.keys, row)              // the own key is the row
			copy(k.queue, row)             // so is a column
			copy(k.queue[k.width:], row)   // of the next the first half
			copy(k.centres[k.width:], row) // and a centre
			for i := range row {
				k.queue[2*k.width+i] = -row[i]
				k.queue[3*k.width+i] = row[i]
				if i >= half {
					k.queue[3*k.width+i] = -row[i]
				}
			}
			copy(k.queue[k.width+half:2*k.width], k.queue[4*k.width+half:])
			for j := range 5 {
				k.owner[j] = 1
			}
			dy := optest.F32s(r, "dy", k.b, k.n).Data.([]float32)
			scores, grad := k.scoresAndGradient(t, dy)
			for i, want := range k.oracle().scores() {
				if !(math.Abs(float64(scores[i]-want)) <= 2e-5) {
					t.Fatalf("%s, flags %b: score %d of row %d: got %v, want %v", c.name, flags, i%k.n, i/k.n, scores[i], want)
				}
			}
			for i, v := range grad {
				if v-v != 0 {
					t.Fatalf("%s, flags %b: gradient %d is %v", c.name, flags, i, v)
				}
			}
			// The distance of Euclidean points has no slope where they coincide.
			if want := k.oracle().gradient(dy); !c.local.Euclid && !close64(grad, want, 2e-4) {
				t.Fatalf("%s, flags %b: gradient %v, want %v", c.name, flags, grad, want)
			}
		}
	}
}

// TestGeodesicLocalErrors names what does not fit.
func TestGeodesicLocalErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(36, 1))
	in := []optest.Input{optest.F32s(r, "x", 2, 6), optest.F32s(r, "centres", 4, 6), optest.F32s(r, "paths", 4, 4), optest.I32s("count", []int32{4})}
	_, ns := optest.Nodes(in)
	for want, l := range map[string]space.Space{
		"spheres must not be below 0 (got -3)":                  {Spheres: -3},
		"6 channels do not divide into 4 spheres":               {Spheres: 4},
		"features of a Euclidean space have no spheres (got 2)": {Spheres: 2, Euclid: true},
	} {
		optest.BuildError(t, want, want, func() { NearestCentre(ns[0], ns[1], ns[3], l) })
		optest.BuildError(t, want, want, func() {
			CentreDistances(EntryArgs{X: ns[0], Centres: ns[1], Paths: ns[2], Count: ns[3], Entries: 1, Space: l})
		})
	}
}

// TestGeodesicAtClusterBorders puts rows where two centres are equally near: the first of
// them is the entry, and the gradient is that of its side.
func TestGeodesicAtClusterBorders(t *testing.T) {
	h := float32(math.Sqrt2 / 2)
	for _, c := range []struct {
		local   local
		row     []float32
		centres []float32
		slope   []float32 // of the distance to the first centre
	}{
		{local{space.Space{Spheres: 2}}, []float32{1, 0, h, h}, []float32{0, 1, 1, 0, 0, -1, 0, 1}, []float32{0, -2 / float32(math.Sqrt(5)), -float32(math.Sqrt(2. / 5)), 0}},
		{local{space.Space{Euclid: true}}, []float32{1, 0, 5, 5}, []float32{1, 3, 5, 1, 1, -3, 5, 9}, []float32{0, -.6, 0, .8}},
	} {
		in := []optest.Input{optest.In("x", []int{1, 4}, c.row), optest.In("centres", []int{2, 4}, c.centres), optest.In("paths", []int{2, 2}, []float32{0, 1, 1, 0}), optest.I32s("count", []int32{2}), optest.In("dy", []int{1, 2}, []float32{1, 0})}
		index, _ := nearestCentres(t, c.row, c.centres, 4, 2, c.local)
		if index[0] != 0 {
			t.Errorf("%+v: the nearest centre is %d", c.local, index[0])
		}
		g, ns := optest.Nodes(in)
		e := CentreDistances(EntryArgs{X: ns[0], Centres: ns[1], Paths: ns[2], Count: ns[3], Entries: 1, Space: c.local.Space})
		grads := check.Get(gorgonia.Grad(optest.Dot(e, ns[4]), ns[0]))(t)
		m := optest.Machine(t, g, ns, in, e, grads[0])
		check.OK(t, m.RunAll())
		optest.Near(t, "slope", valueOf(t, m, grads[0]).F32, c.slope, 1e-5)
	}
}

// TestGeodesicOfBrokenPoints wants NaN from a row or a key that is not finite, where it is
// read and nowhere else, in every mode of every metric.
func TestGeodesicOfBrokenPoints(t *testing.T) {
	for _, c := range testLocals[:3] {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			for flags := range 16 {
				r := rand.New(rand.NewPCG(37, uint64(flags)))
				k := &geoCase{b: 2, batch: 2, n: 30, k: 5, width: 24, count: 5, cols: -1, entries: 1, limit: 9, pointer: 29, paths: make([]float32, 25), owner: optest.RandomInts(r, 30, 5), reach: make([]float32, 30)}
				k.withLocal(r, c.local)
				k.direct, k.same, k.straight = flags&1 != 0, flags&2 != 0, flags&4 != 0
				if flags&8 != 0 {
					k.entries, k.softness = 3, .1
				}
				dy := optest.F32s(r, "dy", 2, k.n).Data.([]float32)
				k.f[1], k.keys[1] = bad, bad // key 0 is the last column
				scores, grad := k.scoresAndGradient(t, dy)
				for at, s := range scores {
					if i, j := at/k.n, at%k.n; (s != s) != (i == 0 || j == k.n-1) {
						t.Fatalf("%s, %v, flags %b: score %d of row %d is %v", c.name, bad, flags, j, i, s)
					}
				}
				if g := grad[1]; !k.straight && g == g {
					t.Errorf("%s, %v, flags %b: the gradient of a row that is not finite is %v", c.name, bad, flags, g)
				}
			}
		}
	}
}

// sizeableGeoCase has room for some clusters.
func sizeableGeoCase(r *rand.Rand) *geoCase {
	for {
		if k := randomGeoCase(r); k.n >= 12 && k.k >= 3 {
			return k
		}
	}
}
