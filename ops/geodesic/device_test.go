package geodesic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestCUDA computes scores of every mode and space on the device, with and without a graph.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	cases := geodesicCases()
	add := func(name string, k *geoCase, l local) {
		cases = append(cases, optest.Case{Name: name, Inputs: k.inputs(), WRT: []int{0}, Build: k.build}, optest.Case{Name: name + "/nearest",
			Inputs: []optest.Input{optest.In("x", []int{k.b, k.width}, k.f), optest.In("centres", []int{k.k, k.width}, k.centres), optest.I32s("count", []int32{int32(k.count)})},
			Build:  func(ns gorgonia.Nodes) *gorgonia.Node { i, _ := NearestCentre(ns[0], ns[1], ns[2], l.Space); return i }})
	}
	for _, c := range testLocals {
		step := 5
		if c.local.One() {
			step = 1 // all modes
		}
		for flags := 0; flags < 32; flags += step {
			k := deviceCase(r, 7, 5, 150, 9, 24, c.local)
			k.same, k.direct = flags&1 != 0, flags&2 != 0
			if flags&4 == 0 {
				k.rowIDs, k.colIDs = optest.RandomInts(r, k.b, 12), optest.RandomInts(r, k.n, 12)
				k.rowIDs[2], k.colIDs[3] = -1, -100
			} else {
				k.b, k.f = k.batch, k.f[:k.batch*k.width]
			}
			if flags&8 != 0 {
				k.entries, k.softness = 4, .3
			}
			if flags&16 != 0 && flags&7 == 7 {
				k.count = 0
			}
			if flags&3 == 1 {
				k.limit = 2
			}
			add(fmt.Sprintf("%s %d", c.name, flags), k, c.local)
		}
	}
	one := deviceCase(r, 1, 1, 1, 1, 1, local{})
	one.pointer, one.cols = 0, -1
	add("one of all", one, local{})
	k := deviceCase(r, 10, 10, 3000, 1100, 8, local{}) // more centres than a block of the sort has threads
	k.same, k.direct = true, true
	add("many centres", k, local{})
	if !cudatest.Emulated(cudatest.Open(t)) {
		for _, c := range testLocals[:3] {
			k := deviceCase(r, 256, 256, 65536, 512, 256, c.local)
			k.same, k.direct, k.entries, k.softness = true, true, 5, .1
			k.rowIDs, k.colIDs = optest.RandomInts(r, k.b, 9000), optest.RandomInts(r, k.n, 9000)
			add("large, "+c.name, k, c.local)
			k.count = 0
			add("large without a graph, "+c.name, k, c.local)
		}
	}
	optest.CheckCUDA(t, cases, "times", "pool negative distance", "pool negative distance df")
}

// deviceCase is a graph whose centres lie well apart, so that rounding chooses none, with some pairs of centres without a path.
func deviceCase(r *rand.Rand, b, batch, n, clusters, width int, l local) *geoCase {
	k := &geoCase{b: b, batch: batch, n: n, k: clusters, width: width, count: clusters - clusters/5, cols: n - n/10, pointer: n - 1 - batch/3, entries: 1, limit: 4 * math.Pi, local: l}
	if l.Spheres > 4 {
		k.width = 6 * l.Spheres // cosines of narrower ones come near 1, where slopes magnify rounding
	}
	k.f, k.keys, k.queue, k.centres = l.points(r, b, k.width), l.points(r, batch, k.width), l.points(r, n, k.width), l.points(r, clusters, k.width)
	k.owner, k.reach, k.paths = optest.RandomInts(r, n, k.count), make([]float32, n), make([]float32, clusters*clusters)
	for i := range k.paths {
		if k.paths[i] = 3 * r.Float32(); r.IntN(5) == 0 {
			k.paths[i] = float32(math.Inf(1))
		}
	}
	for i := range k.reach {
		k.reach[i] = r.Float32()
	}
	return k
}
