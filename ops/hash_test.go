package ops

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestHash builds variants of each op that differ in one argument: they must be
// different nodes with different hashes, and each built twice must be one node.
func TestHash(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	in := []input{
		f32s(r, "m", 12, 12), f32s(r, "v", 12), f32s(r, "s"), f32s(r, "u"),
		i32s("key", make([]int32, 2), 2), f32s(r, "images", 1, 3, 12, 12),
		i32s("bits", make([]int32, 12), 12), f32s(r, "narrow", 12, 5), i32s("near", make([]int32, 36), 12, 3),
	}
	_, ns := nodes(in)
	m, v, s, u, key, images, bits := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6]
	narrow, near := ns[len(ns)-2], ns[len(ns)-1]
	type variants []func() *gorgonia.Node
	of := func(o *op, in ...*gorgonia.Node) func() *gorgonia.Node {
		return func() *gorgonia.Node { return apply(o, in...) }
	}
	groups := map[string]variants{
		"layer norm": {
			func() *gorgonia.Node { return LayerNorm(m, v, v, 1e-5) },
			func() *gorgonia.Node { return LayerNorm(m, v, v, 1e-6) },
			func() *gorgonia.Node { return LayerNorm(m, v, v, 1.0000001e-6) },
		},
		"take": {
			func() *gorgonia.Node { return take(m, 0, tensor.Shape{3}) },
			func() *gorgonia.Node { return take(m, 1, tensor.Shape{3}) },
			func() *gorgonia.Node { return take(m, 0, tensor.Shape{3, 1}) },
		},
		"dropout bits": {
			func() *gorgonia.Node { return DropoutBits(key, 1, 12, 12, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 2, 12, 12, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 1, 13, 12, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 1, 12, 13, 0.5) },
			func() *gorgonia.Node { return DropoutBits(key, 1, 12, 12, 0.6) },
		},
		"dropout": {
			func() *gorgonia.Node { return Dropout(m, bits, 0.5) },
			func() *gorgonia.Node { return Dropout(m, bits, 0.6) },
		},
		"add norm": {
			func() *gorgonia.Node { n, _ := AddNorm(m, m, nil, v, v, 1, 1e-5); return n },
			func() *gorgonia.Node { n, _ := AddNorm(m, m, nil, v, v, 1, 1e-6); return n },
			func() *gorgonia.Node { n, _ := AddNorm(m, m, bits, v, v, 0.5, 1e-5); return n },
			func() *gorgonia.Node { n, _ := AddNorm(m, m, bits, v, v, 0.6, 1e-5); return n },
			func() *gorgonia.Node { _, n := AddNorm(m, m, nil, v, v, 1, 1e-5); return n },
		},
		"add norm dx": {of(addNormGrad(false), m, v, m), of(addNormGrad(true), m, v, m, m)},
		"gather rows": {
			func() *gorgonia.Node { return Embed(m, key) },
			func() *gorgonia.Node { return GatherRows(m, key, 1) },
			func() *gorgonia.Node { return GatherRows(m, key, 2) },
		},
		"gather rows dx": {
			of((&gather{kind: "gather rows", block: 1}).backward(12), bits, m),
			of((&gather{kind: "gather rows", block: 1}).backward(24), bits, m),
			of((&gather{kind: "embed", block: 1}).backward(12), bits, m),
		},
		"add positions": {
			func() *gorgonia.Node { return AddPositions(m, m, 3) },
			func() *gorgonia.Node { return AddPositions(m, m, 4) },
		},
		"add positions dtable": {of(positionsGrad(3, 6), m), of(positionsGrad(3, 7), m), of(positionsGrad(4, 6), m)},
		"l2 normalize": {
			func() *gorgonia.Node { return L2Normalize(m, 1e-12) },
			func() *gorgonia.Node { return L2Normalize(m, 1e-11) },
		},
		"l2 normalize dx": {of(l2NormalizeGrad(1e-12), m, m), of(l2NormalizeGrad(1e-11), m, m)},
		"patchify": {
			func() *gorgonia.Node { return Patchify(images, 2) },
			func() *gorgonia.Node { return Patchify(images, 3) },
		},
		"patchify dx": {
			of(unpatchify(tensor.Shape{1, 1, 12, 12}, 2), m),
			of(unpatchify(tensor.Shape{1, 1, 12, 12}, 3), m),
			of(unpatchify(tensor.Shape{1, 1, 6, 24}, 2), m),
		},
		"prepend token": {
			func() *gorgonia.Node { return PrependToken(m, v, 2) },
			func() *gorgonia.Node { return PrependToken(m, v, 3) },
		},
		"prepend token dx":     {of(dropToken(3, tensor.Shape{1, 12}), m), of(dropToken(5, tensor.Shape{1, 12}), m), of(dropToken(3, tensor.Shape{3, 12}), m)},
		"prepend token dtoken": {of(sumToken(3, tensor.Shape{12}), m), of(sumToken(3, tensor.Shape{1, 12}), m), of(sumToken(5, tensor.Shape{12}), m)},
		"strided rows": {
			func() *gorgonia.Node { return StridedRows(m, 0, 2, 3) },
			func() *gorgonia.Node { return StridedRows(m, 1, 2, 3) },
			func() *gorgonia.Node { return StridedRows(m, 0, 3, 3) },
			func() *gorgonia.Node { return StridedRows(m, 0, 2, 4) },
		},
		"strided rows dx": {
			of(spreadRows(40, 0, 2, 12), m), of(spreadRows(41, 0, 2, 12), m), of(spreadRows(40, 1, 2, 12), m), of(spreadRows(40, 0, 3, 12), m),
		},
		"reduction": {
			func() *gorgonia.Node { return Sum(m) },
			func() *gorgonia.Node { return Mean(m) },
		},
		"spread": {of(spread(tensor.Shape{2}, 1), s), of(spread(tensor.Shape{2}, 2), s), of(spread(tensor.Shape{1, 2}, 1), s)},
		"weighted sum": {
			func() *gorgonia.Node { return WeightedSum([]float32{1, 2}, s, u) },
			func() *gorgonia.Node { return WeightedSum([]float32{2, 1}, s, u) },
			func() *gorgonia.Node { return WeightedSum([]float32{1, 2.0000002}, s, u) },
		},
		"linear": {
			func() *gorgonia.Node { return Linear(m, m, v) },
			func() *gorgonia.Node { return Linear(m, m, nil) },
			func() *gorgonia.Node { return LinearGELU(m, m, v) },
			func() *gorgonia.Node { return LinearGELU(m, m, nil) },
			func() *gorgonia.Node { return LinearPart(m, m, v, 0, 4) },
			func() *gorgonia.Node { return LinearPart(m, m, v, 4, 4) },
			func() *gorgonia.Node { return LinearPart(m, m, v, 4, 8) },
		},
		"pool columns": {
			func() *gorgonia.Node { return PoolColumns(m, s, 3) },
			func() *gorgonia.Node { return PoolColumns(m, s, 4) },
		},
		"combine": {
			func() *gorgonia.Node { return Combine([]float32{1, 2}, m, m) },
			func() *gorgonia.Node { return Combine([]float32{2, 1}, m, m) },
			func() *gorgonia.Node { return Combine([]float32{1, 2.0000002}, m, m) },
		},
		"times": {func() *gorgonia.Node { return times(1, m) }, func() *gorgonia.Node { return times(2, m) }},
		"pool similarity": {
			func() *gorgonia.Node { return PoolSimilarity(m, Pool{Keys: m, Queue: m, Pointer: s}) },
			func() *gorgonia.Node { return PoolSimilarity(m, Pool{Keys: m, Queue: m, Pointer: s, Cols: s}) },
			func() *gorgonia.Node { return poolGradient(m, Pool{Keys: m, Queue: m, Pointer: s}) },
			func() *gorgonia.Node { return poolGradient(m, Pool{Keys: m, Queue: m, Pointer: s, Cols: s}) },
		},
		"centre distances": {
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 1, 1, Local{}}) },
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 2, 1, Local{}}) },
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 2, .5, Local{}}) },
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 2, .5, Local{Euclid: true}}) },
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, Local{}); return k },
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, Local{Euclid: true}); return k },
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 2, .5, Local{Spheres: 2}}) },
			func() *gorgonia.Node { return CentreDistances(EntryArgs{m, m, m, s, 2, .5, Local{Spheres: 3}}) },
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, Local{Spheres: 2}); return k },
			func() *gorgonia.Node { k, _ := NearestCentre(m, m, s, Local{Spheres: 3}); return k },
		},
		"centre distances dx": {
			of(entry{entries: 1}.backward(), m, m, m, s, m, m), of(entry{entries: 2, softness: .5}.backward(), m, m, m, s, m, m), of(entry{entries: 2, softness: 1}.backward(), m, m, m, s, m, m),
			of(entry{entries: 1, local: Local{Spheres: 2}}.backward(), m, m, m, s, m, m), of(entry{entries: 1, local: Local{Spheres: 3}}.backward(), m, m, m, s, m, m), of(entry{entries: 1, local: Local{Euclid: true}}.backward(), m, m, m, s, m, m),
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
		"geometric":   geometricVariants(m, near, v),
		"neighbours":  neighbourVariants(m, bits, s),
		"two operands": {
			func() *gorgonia.Node { return Add(m, m) },
			of(linear{}.gradX(), m, m), of(linear{}.gradW(12), m, m), of(linear{from: 1}.gradX(), m, m), of(linear{}.gradW(13), m, m), of(geluGrad(), m, m), of(geluGradAux(), m, m),
		},
		"one operand": {
			func() *gorgonia.Node { return GELU(m) },
			func() *gorgonia.Node { return ArcCos(m) },
			func() *gorgonia.Node { return Detach(m) },
			of(columnSums(0, 12), m), of(columnSums(0, 13), m), of(columnSums(1, 13), m),
		},
		"sigmoid contrast": sigmoidVariants(m, s, u, bits),
	}
	for name, group := range sequenceVariants(m, bits) {
		groups[name] = group
	}
	for name, group := range groups {
		for i, build := range group {
			n := build()
			if build() != n {
				t.Errorf("%s: variant %d built twice is two nodes", name, i)
			}
			for j, other := range group[:i] {
				if o := other(); o == n || o.Op().Hashcode() == n.Op().Hashcode() {
					t.Errorf("%s: variants %d and %d are one node or have one hash", name, i, j)
				}
			}
		}
	}
}

// geodesicVariant returns operands made of a matrix, a vector, ids and a scalar.
func geodesicVariant(m, v, ids, s *gorgonia.Node, set func(a *GeodesicArgs)) GeodesicArgs {
	a := GeodesicArgs{F: m, Distances: m, Nearest: ids, Pool: Pool{Keys: m, Queue: m, Pointer: s}, Owner: ids, Reach: v, KeyOwner: ids, KeyReach: v, Count: s, Limit: 5}
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
		func(a *GeodesicArgs) { a.Local.Euclid = true },
		func(a *GeodesicArgs) { a.Local.Spheres = 2 },
		func(a *GeodesicArgs) { a.Local.Spheres = 3 },
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
		in = append(in, operandNode(n, i))
	}
	grads := n.Op().(*typed).grad(in, n, n)
	if grads[geoDistances] != nil {
		return grads[geoDistances]
	}
	return grads[geoF]
}
