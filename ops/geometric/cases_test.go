package geometric

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// geometricCases are rows of TestCases. Products are made in
// fixed units, so none of them may depend on the threads.
func geometricCases() []optest.Case {
	r := rand.New(rand.NewPCG(31, 1))
	var cases []optest.Case
	for _, n := range []struct {
		name string
		k    nearCase
	}{
		{"exact", nearCase{b: 14, q: 500, width: 48, filled: 450, near: 20, count: 5, law: Biased}},
		{"filling", nearCase{b: 14, q: 500, width: 48, filled: 10, near: 20, count: 5, law: Biased}},
		{"uniform", nearCase{b: 300, q: 500, width: 16, filled: 500, near: 20, count: 5, law: Uniform}},
		{"clusters", nearCase{b: 14, q: 500, width: 48, filled: 450, near: 20, count: 5, law: Closest, clusters: 30, used: 25, candidates: 60}},
		{"no graph", nearCase{b: 14, q: 500, width: 48, filled: 450, near: 20, count: 5, law: Closest, clusters: 30, candidates: 60}},
	} {
		cases = append(cases, optest.Case{Name: "neighbours, " + n.name, Inputs: n.k.inputs(r), Build: n.k.build})
	}
	for _, n := range []struct {
		name string
		k    geomCase
	}{
		{"sphere", geomCase{b: 33, q: 60, k: 8, d: 150, out: 70, tokens: 1, groups: 1, bias: true}},
		{"oblique", geomCase{b: 33, q: 60, k: 8, d: 60, out: 20, tokens: 3, groups: 3}},
		{"chunks", geomCase{b: 33, q: 60, k: 8, d: 150, out: 70, tokens: 1, bias: true, budget: 5 * 8 * 150}},
	} {
		for i, kernel := range geomKernels {
			k := n.k
			k.o = Options{Kernel: kernel, Epsilon: .3, Scale: geomScales[i%len(geomScales)]}
			wrt := []int{3}
			if k.bias {
				wrt = append(wrt, 4)
			}
			cases = append(cases, optest.Case{Name: "geometric, " + n.name + " " + kernel, Inputs: k.inputs(r), WRT: wrt, Build: k.build})
		}
	}
	for _, n := range []struct {
		name string
		k    pooledCase
	}{
		{"pool", pooledCase{b: 20, q: 60, k: 8, d: 50, hidden: 70, out: 30, unit: true}},
		{"pool in chunks with dropout", pooledCase{b: 20, q: 60, k: 8, d: 50, hidden: 70, out: 30, unit: true, drop: .3, chunk: 24}},
	} {
		n.k.o = Options{Kernel: Heat, Epsilon: .3, Scale: Unit}
		cases = append(cases, optest.Case{Name: "geometric, " + n.name, Inputs: n.k.inputs(r), WRT: []int{1, 2, 3, 4}, Build: n.k.build, GEMM: true})
	}
	return cases
}

// geometricVariants returns calls that differ in one argument each, of a matrix (12, 12),
// ids (12, 3) and a vector (12).
func geometricVariants(m, near, v *gorgonia.Node) (builds []func() *gorgonia.Node) {
	for _, set := range []func(a *GeometricArgs){
		func(*GeometricArgs) {},
		func(a *GeometricArgs) { a.Bias = v },
		func(a *GeometricArgs) { a.Groups = 0 },
		func(a *GeometricArgs) { a.Groups = 2 },
		func(a *GeometricArgs) { a.Kernel = Linear },
		func(a *GeometricArgs) { a.Epsilon = .8000001 },
		func(a *GeometricArgs) { a.Scale = None },
	} {
		builds = append(builds, func() *gorgonia.Node {
			a := GeometricArgs{Anchors: m, Queue: m, Neighbours: near, Weight: m, Tokens: 1, Groups: 1, Kernel: Heat, Epsilon: .8, Scale: Unit}
			set(&a)
			return Geometric(a)
		})
	}
	return builds
}

// neighbourVariants returns searches that differ in one argument each.
func neighbourVariants(m, ids, s *gorgonia.Node) (builds []func() *gorgonia.Node) {
	for _, set := range []func(a *NeighbourArgs){
		func(*NeighbourArgs) {},
		func(a *NeighbourArgs) { a.Count = 4 },
		func(a *NeighbourArgs) { a.Sampling = Biased },
		func(a *NeighbourArgs) { a.Sampling, a.Noise, a.Near = Closest, nil, 11 },
		func(a *NeighbourArgs) { a.Sampling, a.Noise = Closest, nil },
		func(a *NeighbourArgs) {
			a.Clusters = &NeighbourClusters{Owner: ids, Own: ids, Paths: m, Used: s, Candidates: 12}
		},
		func(a *NeighbourArgs) {
			a.Clusters = &NeighbourClusters{Owner: ids, Own: ids, Paths: m, Used: s, Candidates: 13}
		},
	} {
		builds = append(builds, func() *gorgonia.Node {
			a := NeighbourArgs{X: m, Queue: m, Filled: s, Noise: m, Near: 12, Count: 3, Sampling: Uniform}
			set(&a)
			return Neighbours(a)
		})
	}
	return builds
}
