package geodesic

import (
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
)

// geoCase is a case of Geodesic with everything that leads to it: rows of f, a pool, and
// a graph that need not fit the pool.
type geoCase struct {
	b, batch, n, k, width   int
	f, keys, queue, centres []float32
	paths                   []float32
	owner                   []int32
	reach                   []float32
	pointer, cols, count    int // cols < 0: all
	rowIDs, colIDs          []int32
	entries                 int
	softness, limit         float32
	direct, same, straight  bool
	local                   local
	idsAt, colAt            int // positions of inputs
}

// randomGeoCase returns a case in which about one pair of centres in three has no path.
func randomGeoCase(r *rand.Rand) *geoCase {
	k := &geoCase{b: 1 + r.IntN(6), n: 1 + r.IntN(40), k: 1 + r.IntN(7), width: 3 + r.IntN(6), cols: -1, limit: 4 * math.Pi, entries: 1}
	k.batch = 1 + r.IntN(k.n)
	k.pointer, k.count = r.IntN(k.n), 1+r.IntN(k.k)
	k.f, k.keys, k.queue, k.centres = optest.UnitRows(r, k.b, k.width), optest.UnitRows(r, k.batch, k.width), optest.UnitRows(r, k.n, k.width), optest.UnitRows(r, k.k, k.width)
	k.paths = make([]float32, k.k*k.k)
	for i := range k.k {
		for j := range i {
			d := 4 * r.Float32()
			if r.IntN(3) == 0 {
				d = float32(math.Inf(1))
			}
			k.paths[i*k.k+j], k.paths[j*k.k+i] = d, d
		}
	}
	k.owner, k.reach = make([]int32, k.n), make([]float32, k.n)
	for j := range k.n {
		k.owner[j], k.reach[j] = int32(r.IntN(k.count)), 2*r.Float32()
	}
	if r.IntN(3) == 0 {
		k.cols = 1 + r.IntN(k.n)
	}
	if r.IntN(2) == 0 {
		k.entries, k.softness = 1+r.IntN(k.k), 0.02+r.Float32()
	}
	if r.IntN(3) == 0 {
		k.limit = 1 + 4*r.Float32() // cuts many paths
	}
	k.direct, k.same, k.straight = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(4) == 0
	if r.IntN(2) == 0 {
		k.rowIDs, k.colIDs = optest.RandomInts(r, k.b, 6), optest.RandomInts(r, k.n, 6)
		k.colIDs[r.IntN(k.n)] = -100
		if r.IntN(4) == 0 {
			k.rowIDs[0] = -1
		}
	} else if k.batch < k.b {
		k.direct = false
	}
	return k
}

// inputs returns the operands as inputs of a graph.
func (k *geoCase) inputs() []optest.Input {
	in := []optest.Input{
		optest.In("f", []int{k.b, k.width}, k.f), optest.In("keys", []int{k.batch, k.width}, k.keys), optest.In("queue", []int{k.n, k.width}, k.queue),
		optest.I32s("pointer", []int32{int32(k.pointer)}), optest.In("owner", []int{k.n}, k.owner), optest.In("reach", []int{k.n}, k.reach),
		optest.In("centres", []int{k.k, k.width}, k.centres), optest.In("paths", []int{k.k, k.k}, k.paths), optest.I32s("count", []int32{int32(k.count)}),
	}
	if k.cols >= 0 {
		k.colAt = len(in)
		in = append(in, optest.I32s("cols", []int32{int32(k.cols)}))
	}
	if k.rowIDs != nil {
		k.idsAt = len(in)
		in = append(in, optest.In("row ids", []int{k.b}, k.rowIDs), optest.In("column ids", []int{k.n}, k.colIDs))
	}
	return in
}

func (k *geoCase) pool(ns gorgonia.Nodes) pool.Pool {
	p := pool.Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3]}
	if k.cols >= 0 {
		p.Cols = ns[k.colAt]
	}
	return p
}

// build returns the scores.
func (k *geoCase) build(ns gorgonia.Nodes) *gorgonia.Node {
	f, centres, count := ns[0], ns[6], ns[8]
	a := GeodesicArgs{
		F: f, Pool: k.pool(ns), Owner: ns[4], Reach: ns[5], Count: count,
		Distances:       CentreDistances(EntryArgs{X: f, Centres: centres, Paths: ns[7], Count: count, Entries: k.entries, Softness: k.softness, Space: k.local.Space}),
		DirectPositives: k.direct, SameCluster: k.same, StraightThrough: k.straight, Limit: k.limit, Space: k.local.Space,
	}
	a.Nearest, _ = NearestCentre(f, centres, count, k.local.Space)
	a.KeyOwner, a.KeyReach = NearestCentre(ns[1], centres, count, k.local.Space)
	if k.rowIDs != nil {
		a.RowIDs, a.ColIDs = ns[k.idsAt], ns[k.idsAt+1]
	}
	return Geodesic(a)
}

// oracle is the definition in float64, pair by pair.
type oracle struct {
	*geoCase
	rows  [][]float64 // of the pool, the batch in its place
	owner []int
	reach []float64
	f     []float64
	slope bool        // see plain
	wide  [][]float64 // centres
}

func (k *geoCase) oracle() *oracle {
	o := &oracle{geoCase: k, f: widen(k.f)}
	for j := range k.n {
		o.rows = append(o.rows, widen(k.queue[j*k.width:(j+1)*k.width]))
		o.owner, o.reach = append(o.owner, int(k.owner[j])), append(o.reach, float64(k.reach[j]))
	}
	for i := range k.batch {
		j := (k.pointer + i) % k.n
		o.rows[j] = widen(k.keys[i*k.width : (i+1)*k.width])
		o.owner[j], o.reach[j] = o.nearest(o.rows[j])
	}
	return o
}

func widen(x []float32) []float64 {
	var y []float64
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

func dot64(x, y []float64) (s float64) {
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

// angle is the arc cosine with the limits that make it differentiable.
func angle(x, y []float64) float64 {
	d := dot64(x, y)
	return math.Acos(math.Copysign(min(math.Abs(d), 1-1e-6), d))
}

// oracleDistance is the local distance by its definition.
func (l local) oracleDistance(x, y []float64) float64 {
	var s float64
	if l.Euclid {
		for i, v := range x {
			s += (v - y[i]) * (v - y[i])
		}
		return math.Sqrt(s)
	}
	n := len(x) / max(l.Spheres, 1)
	for lo := 0; lo < len(x); lo += n {
		a := angle(x[lo:lo+n], y[lo:lo+n])
		s += a * a
	}
	return math.Sqrt(s)
}

// nearer says whether x is nearer to a than to b by chord.
func (l local) nearer(x, a, b []float64) bool {
	if l.Euclid {
		return l.oracleDistance(x, a) < l.oracleDistance(x, b)
	}
	return dot64(x, a) > dot64(x, b)
}

func (o *oracle) centre(m int) []float64 {
	if o.wide == nil {
		o.wide = make([][]float64, o.k)
	}
	if o.wide[m] == nil {
		o.wide[m] = widen(o.centres[m*o.width : (m+1)*o.width])
	}
	return o.wide[m]
}

func (o *oracle) nearest(x []float64) (int, float64) {
	best := 0
	for m := 1; m < o.count; m++ {
		if o.local.nearer(x, o.centre(m), o.centre(best)) {
			best = m
		}
	}
	return best, o.local.oracleDistance(x, o.centre(best))
}

// distance returns E of row x and centre k.
func (o *oracle) distance(x []float64, k int) float64 {
	taken := make([]bool, o.count)
	var d []float64
	for range min(o.entries, o.count) {
		best := -1
		for m := range o.count {
			if !taken[m] && (best < 0 || o.local.nearer(x, o.centre(m), o.centre(best))) {
				best = m
			}
		}
		taken[best] = true
		d = append(d, o.local.oracleDistance(x, o.centre(best))+float64(o.paths[best*o.k+k]))
	}
	if o.entries == 1 {
		return d[0]
	}
	var sum float64
	for _, v := range d {
		sum += math.Exp(-v / float64(o.softness))
	}
	return -float64(o.softness) * math.Log(sum)
}

// positive says whether column j is one of row i.
func (o *oracle) positive(i, j int) bool {
	if o.rowIDs == nil {
		return i < o.batch && (o.pointer+i)%o.n == j
	}
	return o.rowIDs[i] >= 0 && o.rowIDs[i] == o.colIDs[j]
}

// columns returns how many columns exist.
func (o *oracle) columns() int {
	if o.cols < 0 {
		return o.n
	}
	return o.cols
}

// score returns s_ij.
func (o *oracle) score(i, j int) float64 {
	x := o.f[i*o.width : (i+1)*o.width]
	switch {
	case j >= o.columns():
		return 0
	case o.count == 0:
		return o.plain(x, o.rows[j])
	}
	direct := o.local.oracleDistance(x, o.rows[j])
	theta := o.distance(x, o.owner[j]) + o.reach[j]
	if own, _ := o.nearest(x); o.same && own == o.owner[j] {
		theta = direct
	} else if o.direct && o.positive(i, j) {
		theta = min(theta, direct)
	}
	limit := float64(o.limit)
	return math.Cos(min(theta, limit) * math.Pi / limit)
}

// plain is the score without a graph; of Euclidean rows with straight_through, what that
// has the gradient of.
func (o *oracle) plain(x, y []float64) float64 {
	limit, d := float64(o.limit), o.local.oracleDistance(x, y)
	switch {
	case !o.local.Euclid:
		return dot64(x, y) / float64(max(o.local.Spheres, 1))
	case o.slope:
		return -d * math.Pi / limit
	}
	return math.Cos(min(d, limit) * math.Pi / limit)
}

// scores returns all of them.
func (o *oracle) scores() []float32 {
	s := make([]float32, 0, o.b*o.n)
	for i := range o.b {
		for j := range o.n {
			s = append(s, float32(o.score(i, j)))
		}
	}
	return s
}

// gradient returns the gradient of sum(dy*scores) for f by central differences of the
// definition, of that of cosines with straight_through.
func (o *oracle) gradient(dy []float32) []float32 {
	if o.straight {
		k := *o.geoCase
		k.count = 0
		p := k.oracle()
		p.rows, p.slope = o.rows, true
		o = p
	}
	loss := func(i int) (s float64) {
		for j := range o.n {
			s += float64(dy[i*o.n+j]) * o.score(i, j)
		}
		return s
	}
	const eps = 1e-7
	g := make([]float32, len(o.f))
	for at := range o.f {
		old := o.f[at]
		o.f[at] = old + eps
		up := loss(at / o.width)
		o.f[at] = old - eps
		down := loss(at / o.width)
		o.f[at] = old
		g[at] = float32((up - down) / (2 * eps))
	}
	return g
}
