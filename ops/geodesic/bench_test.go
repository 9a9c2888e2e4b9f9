package geodesic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
)

// BenchmarkGeodesic times the scores of 32 rows and a queue of 65,536 in a graph of 256
// centres, 256 channels, with their gradients, beside plain cosines. See optest.Benchmark
// for the metrics.
func BenchmarkGeodesic(b *testing.B) {
	r := rand.New(rand.NewPCG(26, 1))
	const rows, n, clusters, width = 32, 65536, 256, 256
	k := geoCase{
		b: rows, batch: rows, n: n, k: clusters, width: width, count: clusters, cols: -1, pointer: 1000, entries: 1, limit: 4 * math.Pi,
		f: optest.UnitRows(r, rows, width), keys: optest.UnitRows(r, rows, width), queue: optest.UnitRows(r, n, width), centres: optest.UnitRows(r, clusters, width),
		paths: make([]float32, clusters*clusters), owner: optest.RandomInts(r, n, clusters), reach: make([]float32, n),
	}
	for i := range k.paths {
		k.paths[i] = 3 * r.Float32()
	}
	for i := range k.reach {
		k.reach[i] = 1 + .3*r.Float32()
	}
	for _, c := range []struct {
		name  string
		set   func(k *geoCase)
		build func(k *geoCase, ns gorgonia.Nodes) *gorgonia.Node
	}{
		{"cosine", func(*geoCase) {}, func(k *geoCase, ns gorgonia.Nodes) *gorgonia.Node { return pool.Similarity(ns[0], k.pool(ns)) }},
		{"strict", func(*geoCase) {}, (*geoCase).build},
		{"same cluster and straight through", func(k *geoCase) { k.same, k.straight, k.direct = true, true, true }, (*geoCase).build},
		{"same cluster", func(k *geoCase) { k.same, k.direct = true, true }, (*geoCase).build},
		{"soft entry", func(k *geoCase) { k.entries, k.softness = 8, .05 }, (*geoCase).build},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := k
			c.set(&k)
			optest.Benchmark(b, optest.Engine, optest.Case{Inputs: k.inputs(), WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return c.build(&k, ns) }})
		})
	}
}
