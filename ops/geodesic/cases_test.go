package geodesic

import (
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
)

// geodesicCases are rows of TestCases.
func geodesicCases() []optest.Case {
	r := rand.New(rand.NewPCG(25, 1))
	const b, n, clusters, width = 12, 9000, 20, 24
	k := geoCase{
		b: b, batch: b, n: n, k: clusters, width: width, count: clusters, cols: n - 100, pointer: n - 5, entries: 1, limit: 4 * math.Pi,
		f: optest.UnitRows(r, b, width), keys: optest.UnitRows(r, b, width), queue: optest.UnitRows(r, n, width), centres: optest.UnitRows(r, clusters, width),
		paths: make([]float32, clusters*clusters), owner: optest.RandomInts(r, n, clusters), reach: make([]float32, n),
	}
	for i := range k.paths {
		k.paths[i] = 3 * r.Float32()
	}
	k.paths[5] = float32(math.Inf(1))
	for i := range k.reach {
		k.reach[i] = r.Float32()
	}
	var cases []optest.Case
	add := func(name string, set func(k *geoCase)) {
		k := k
		set(&k)
		cases = append(cases, optest.Case{Name: "geodesic, " + name, Inputs: k.inputs(), WRT: []int{0}, GEMM: true, Build: k.build})
	}
	add("strict", func(*geoCase) {})
	add("same cluster", func(k *geoCase) { k.same = true })
	add("straight through", func(k *geoCase) { k.same, k.straight = true, true })
	add("soft entry", func(k *geoCase) { k.entries, k.softness = 5, .05 })
	add("direct positives", func(k *geoCase) { k.direct, k.same = true, true })
	add("ids", func(k *geoCase) {
		k.direct, k.rowIDs, k.colIDs = true, optest.RandomInts(r, b, 300), optest.RandomInts(r, n, 300)
	})
	add("no graph", func(k *geoCase) { k.count, k.same, k.direct = 0, true, true })
	for _, c := range testLocals[:3] {
		of := func(set func(k *geoCase)) func(k *geoCase) {
			return func(k *geoCase) {
				k.local = c.local
				k.f, k.keys, k.queue, k.centres = c.local.points(r, b, width), c.local.points(r, b, width), c.local.points(r, n, width), c.local.points(r, clusters, width)
				set(k)
			}
		}
		add(c.name, of(func(k *geoCase) { k.direct, k.same = true, true }))
		add("soft entry, "+c.name, of(func(k *geoCase) { k.entries, k.softness = 5, .05 }))
		add("straight through, "+c.name, of(func(k *geoCase) { k.same, k.straight = true, true }))
		add("no graph, "+c.name, of(func(k *geoCase) { k.count, k.same = 0, true }))
		cases = append(cases, givenDistances(r, k, c.name, c.local, false), givenDistances(r, k, c.name+", straight through", c.local, c.local.Euclid),
			nearestCase(r, k, c.name, c.local))
	}
	return append(cases,
		givenDistances(r, k, "one sphere", local{}, false),
		nearestCase(r, k, "one sphere", local{}),
	)
}

// givenDistances is the op between two matrix products, whose bits may depend on the threads:
// with every distance given, the scores and their gradient must not.
func givenDistances(r *rand.Rand, k geoCase, name string, l local, straight bool) optest.Case {
	in := k.inputs()
	wrt := []int{0, 1}
	if straight {
		wrt = wrt[:1]
	}
	return optest.Case{Name: "geodesic of given distances, " + name, WRT: wrt,
		Inputs: []optest.Input{optest.In("f", []int{k.b, k.width}, l.points(r, k.b, k.width)), optest.F32s(r, "distances", k.b, k.k), optest.In("keys", []int{k.batch, k.width}, l.points(r, k.batch, k.width)),
			optest.In("queue", []int{k.n, k.width}, l.points(r, k.n, k.width)), in[3], in[4], in[5],
			optest.I32s("key owner", optest.RandomInts(r, k.b, k.k), k.b), optest.F32s(r, "key reach", k.b), in[8], optest.I32s("nearest", optest.RandomInts(r, k.b, k.k), k.b)},
		Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Geodesic(GeodesicArgs{F: ns[0], Distances: ns[1], Pool: pool.Pool{Keys: ns[2], Queue: ns[3], Pointer: ns[4]}, Owner: ns[5], Reach: ns[6],
				KeyOwner: ns[7], KeyReach: ns[8], Count: ns[9], Nearest: ns[10], SameCluster: true, DirectPositives: true, StraightThrough: straight, Limit: 6, Space: l.Space})
		}}
}

// nearestCase looks for the centres of a pool.
func nearestCase(r *rand.Rand, k geoCase, name string, l local) optest.Case {
	return optest.Case{Name: "nearest centre, " + name, GEMM: true,
		Inputs: []optest.Input{optest.In("x", []int{k.n, k.width}, l.points(r, k.n, k.width)), optest.In("centres", []int{k.k, k.width}, l.points(r, k.k, k.width)), optest.I32s("count", []int32{int32(k.count)})},
		Build:  func(ns gorgonia.Nodes) *gorgonia.Node { _, a := NearestCentre(ns[0], ns[1], ns[2], l.Space); return a }}
}
