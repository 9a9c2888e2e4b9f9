package geodesic

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pool"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, v, s, bits, narrow := h.M, h.V, h.S, h.Bits, h.Narrow
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"centre distances": {
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 1, 1, space.Space{}}) },
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 2, 1, space.Space{}}) },
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 2, .5, space.Space{}}) },
			func() *gorgonia.Node {
				return CentreDistances(EntryArgs{m, m, m, s, 2, .5, space.Space{Euclid: true}})
			},
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, space.Space{}); return k },
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, space.Space{Euclid: true}); return k },
			func() *gorgonia.Node {
				return CentreDistances(EntryArgs{m, m, m, s, 2, .5, space.Space{Spheres: 2}})
			},
			func() *gorgonia.Node {
				return CentreDistances(EntryArgs{m, m, m, s, 2, .5, space.Space{Spheres: 3}})
			},
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, space.Space{Spheres: 2}); return k },
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, space.Space{Spheres: 3}); return k },
		},
		"centre distances dx": {
			optest.Variant(entry{entries: 1}.backward(), m, m, m, s, m, m), optest.Variant(entry{entries: 2, softness: .5}.backward(), m, m, m, s, m, m), optest.Variant(entry{entries: 2, softness: 1}.backward(), m, m, m, s, m, m),
			optest.Variant(entry{entries: 1, local: local{space.Space{Spheres: 2}}}.backward(), m, m, m, s, m, m), optest.Variant(entry{entries: 1, local: local{space.Space{Spheres: 3}}}.backward(), m, m, m, s, m, m), optest.Variant(entry{entries: 1, local: local{space.Space{Euclid: true}}}.backward(), m, m, m, s, m, m),
		},
		"cluster members": {
			func() *gorgonia.Node { return clusterMembers(geodesicVariant(m, v, bits, s, nil)) },
			func() *gorgonia.Node {
				return clusterMembers(geodesicVariant(m, v, bits, s, func(a *GeodesicArgs) { a.Distances = narrow }))
			},
			func() *gorgonia.Node {
				return clusterMembers(geodesicVariant(m, v, bits, s, func(a *GeodesicArgs) { a.Pool.Cols = s }))
			},
		},
		"geodesic":    geodesicVariants(m, v, bits, s, func(n *gorgonia.Node) *gorgonia.Node { return n }),
		"geodesic dx": geodesicVariants(m, v, bits, s, scoreGradientForTest),
	})
}

// geodesicVariant returns operands made of a matrix, a vector, ids and a scalar.
func geodesicVariant(m, v, ids, s *gorgonia.Node, set func(a *GeodesicArgs)) GeodesicArgs {
	a := GeodesicArgs{F: m, Distances: m, Nearest: ids, Pool: pool.Pool{Keys: m, Queue: m, Pointer: s}, Owner: ids, Reach: v, KeyOwner: ids, KeyReach: v, Count: s, Limit: 5}
	if set != nil {
		set(&a)
	}
	return a
}

// geodesicVariants returns scores that differ in one argument each.
func geodesicVariants(m, v, ids, s *gorgonia.Node, of func(n *gorgonia.Node) *gorgonia.Node) (builds []func() *gorgonia.Node) {
	for _, set := range []func(a *GeodesicArgs){
		nil,
		func(a *GeodesicArgs) { a.Limit = 6 },
		func(a *GeodesicArgs) { a.SameCluster = true },
		func(a *GeodesicArgs) { a.DirectPositives = true },
		func(a *GeodesicArgs) { a.DirectPositives, a.RowIDs, a.ColIDs = true, ids, ids },
		func(a *GeodesicArgs) { a.SameCluster, a.DirectPositives = true, true },
		func(a *GeodesicArgs) { a.StraightThrough = true },
		func(a *GeodesicArgs) { a.Space.Euclid = true },
		func(a *GeodesicArgs) { a.Space.Spheres = 2 },
		func(a *GeodesicArgs) { a.Space.Spheres = 3 },
		func(a *GeodesicArgs) { a.Pool.Cols = s },
	} {
		builds = append(builds, func() *gorgonia.Node { return of(Geodesic(geodesicVariant(m, v, ids, s, set))) })
	}
	return builds
}

// scoreGradientForTest returns the gradient node of scores n, with n as its gradient.
func scoreGradientForTest(n *gorgonia.Node) *gorgonia.Node {
	var in gorgonia.Nodes
	for i := range n.Op().Arity() {
		in = append(in, op.Operand(n, i))
	}
	grads := op.Of(n).Grad(in, n, n)
	if grads[geoDistances] != nil {
		return grads[geoDistances]
	}
	return grads[geoF]
}
