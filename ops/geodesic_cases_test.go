package ops

import (
	"math"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
)

// geodesicCases are rows of the table of all ops, see opCases.
func geodesicCases() []opCase {
	r := rand.New(rand.NewPCG(25, 1))
	const b, n, clusters, width = 12, 9000, 20, 24
	k := geoCase{
		b: b, batch: b, n: n, k: clusters, width: width, count: clusters, cols: n - 100, pointer: n - 5, entries: 1, limit: 4 * math.Pi,
		f: unitRows(r, b, width), keys: unitRows(r, b, width), queue: unitRows(r, n, width), centres: unitRows(r, clusters, width),
		paths: make([]float32, clusters*clusters), owner: randomInts(r, n, clusters), reach: make([]float32, n),
	}
	for i := range k.paths {
		k.paths[i] = 3 * r.Float32()
	}
	k.paths[5] = float32(math.Inf(1))
	for i := range k.reach {
		k.reach[i] = r.Float32()
	}
	var cases []opCase
	add := func(name string, set func(k *geoCase)) {
		k := k
		set(&k)
		cases = append(cases, opCase{name: "geodesic, " + name, inputs: k.inputs(), wrt: []int{0}, gemm: true, build: k.build})
	}
	add("strict", func(*geoCase) {})
	add("same cluster", func(k *geoCase) { k.same = true })
	add("straight through", func(k *geoCase) { k.same, k.straight = true, true })
	add("soft entry", func(k *geoCase) { k.entries, k.softness = 5, .05 })
	add("direct positives", func(k *geoCase) { k.direct, k.same = true, true })
	add("ids", func(k *geoCase) {
		k.direct, k.rowIDs, k.colIDs = true, randomInts(r, b, 300), randomInts(r, n, 300)
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
	in := k.inputs()
	return append(cases,
		givenDistances(r, k, "one sphere", Local{}, false),
		opCase{name: "pool similarity", inputs: in, wrt: []int{0}, gemm: true,
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return PoolSimilarity(ns[0], k.withInputs().pool(ns)) }},
		opCase{name: "pool columns", inputs: []input{f32s(r, "x", b, 500), i32s("pointer", []int32{490})},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return PoolColumns(ns[0], ns[1], 20) }},
		nearestCase(r, k, "one sphere", Local{}),
		opCase{name: "combine of two", inputs: []input{f32s(r, "x", 120, 321), f32s(r, "y", 120, 321)}, wrt: []int{0, 1},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return Combine([]float32{.3, .7}, ns[0], ns[1]) }},
	)
}

// withInputs returns k once it knows where its inputs are.
func (k *geoCase) withInputs() *geoCase {
	k.inputs()
	return k
}

// givenDistances is the op between two matrix products, whose bits may depend on the threads:
// with every distance given, the scores and their gradient must not.
func givenDistances(r *rand.Rand, k geoCase, name string, l Local, straight bool) opCase {
	in := k.inputs()
	wrt := []int{0, 1}
	if straight {
		wrt = wrt[:1]
	}
	return opCase{name: "geodesic of given distances, " + name, wrt: wrt,
		inputs: []input{{"f", []int{k.b, k.width}, l.points(r, k.b, k.width)}, f32s(r, "distances", k.b, k.k), {"keys", []int{k.batch, k.width}, l.points(r, k.batch, k.width)},
			{"queue", []int{k.n, k.width}, l.points(r, k.n, k.width)}, in[3], in[4], in[5],
			i32s("key owner", randomInts(r, k.b, k.k), k.b), f32s(r, "key reach", k.b), in[8], i32s("nearest", randomInts(r, k.b, k.k), k.b)},
		build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Geodesic(GeodesicArgs{F: ns[0], Distances: ns[1], Pool: Pool{Keys: ns[2], Queue: ns[3], Pointer: ns[4]}, Owner: ns[5], Reach: ns[6],
				KeyOwner: ns[7], KeyReach: ns[8], Count: ns[9], Nearest: ns[10], SameCluster: true, DirectPositives: true, StraightThrough: straight, Limit: 6, Local: l})
		}}
}

// nearestCase looks for the centres of a pool.
func nearestCase(r *rand.Rand, k geoCase, name string, l Local) opCase {
	return opCase{name: "nearest centre, " + name, gemm: true,
		inputs: []input{{"x", []int{k.n, k.width}, l.points(r, k.n, k.width)}, {"centres", []int{k.k, k.width}, l.points(r, k.k, k.width)}, i32s("count", []int32{int32(k.count)})},
		build:  func(ns gorgonia.Nodes) *gorgonia.Node { _, a := NearestCentre(ns[0], ns[1], ns[2], l); return a }}
}
