package geometric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// deviceCases are the cases of the host and what the device does apart: tiles of all sizes, neighbourhoods of one point and of more
// than a tile, searches of more than a block keeps at once.
func deviceCases(t *testing.T) []optest.Case {
	r := rand.New(rand.NewPCG(53, 2))
	cases := geometricCases()
	// Distances do not change when all points move: where they are not normalised behind the head the gradient of its last bias is 0, and
	// what comes out is rounding.
	for i := range cases {
		if strings.HasPrefix(cases[i].Name, "geometric, chunks") {
			cases[i].WRT = []int{3}
		}
	}
	geom := func(name string, k geomCase) {
		wrt := []int{3}
		if k.bias && (k.groups > 0 || k.o.Scale == Unit) {
			wrt = append(wrt, 4)
		}
		cases = append(cases, optest.Case{Name: name, Inputs: k.inputs(r), WRT: wrt, Build: k.build})
	}
	for i, k := range []geomCase{
		{b: 4, q: 200, k: 70, d: 19, out: 9, tokens: 1, groups: 1, bias: true},
		{b: 5, q: 60, k: 20, d: 12, out: 10, tokens: 2, groups: 4},
		{b: 5, q: 60, k: 8, d: 12, out: 10, tokens: 1, bias: true},
	} {
		for j, kernel := range geomKernels {
			k.o = Options{Kernel: kernel, Epsilon: .3, Scale: geomScales[(i+j)%len(geomScales)]}
			geom(fmt.Sprintf("%d points, %s %s", k.k, kernel, k.o.Scale), k)
		}
	}
	for _, scale := range []string{Relative, None} {
		k := pooledCase{b: 6, q: 40, k: 18, d: 10, hidden: 12, out: 7, drop: .3, chunk: 40, o: Options{Kernel: Inverse, Scale: scale}}
		cases = append(cases, optest.Case{Name: "pool, " + scale, Inputs: k.inputs(r), WRT: []int{1, 2, 3}, Build: k.build, GEMM: true})
	}
	near := func(name string, k nearCase, change func(in []optest.Input)) {
		in := k.inputs(r)
		if change != nil {
			change(in)
		}
		cases = append(cases, optest.Case{Name: name, Inputs: in, Build: k.build})
	}
	near("one neighbour", nearCase{b: 3, q: 5, width: 3, filled: 5, near: 1, count: 1, law: Closest}, nil)
	near("all of them", nearCase{b: 3, q: 77, width: 7, filled: 77, near: 77, count: 77, law: Biased}, nil)
	near("few clusters", nearCase{b: 70, q: 300, width: 9, filled: 290, near: 40, count: 9, law: Uniform, clusters: 3, used: 2, candidates: 45}, nil)
	near("equal rows", nearCase{b: 9, q: 400, width: 33, filled: 380, near: 50, count: 20, law: Closest}, func(in []optest.Input) {
		q := in[1].Floats()
		for i := range 400 { // of 20 kinds, so that ties decide
			copy(q[i*33:(i+1)*33], q[i%20*33:(i%20+1)*33])
		}
		q[7*33] = float32(math.NaN())
		clear(q[9*33 : 10*33])
	})
	if !cudatest.Emulated(cudatest.Open(t)) {
		large := nearCase{b: 300, q: 65536, width: 768, filled: 65000, near: 600, count: 15, law: Biased}
		near("large search", large, nil)
		search := &cases[len(cases)-1]
		search.Tied = func(place int, got, want int32) bool { // some of 600 rows are equally near but for rounding
			cos := large.cosines(search.Inputs, place/large.count)
			return got >= 0 && int(got) < large.filled && math.Abs(cos[got]-cos[want]) <= 1e-6
		}
		k := pooledCase{b: 300, q: 2000, k: 150, d: 768, hidden: 1000, out: 768, unit: true, drop: .3, o: Options{Kernel: Heat, Epsilon: .8, Scale: Unit}}
		cases = append(cases, optest.Case{Name: "large pool", Inputs: k.inputs(r), WRT: []int{1, 2, 3, 4}, Build: k.build, GEMM: true})
	}
	return cases
}

// TestCUDA computes the ops of this package on the device.
func TestCUDA(t *testing.T) { optest.CheckCUDA(t, deviceCases(t)) }

// TestCUDAPoolOnHost leaves a pool with the host that cannot be read as a whole: the rows that are asked for can be.
func TestCUDAPoolOnHost(t *testing.T) {
	k := pooledCase{b: 6, q: 40, k: 5, d: 10, hidden: 12, out: 7, drop: .3, chunk: 10, o: Options{Kernel: Heat, Epsilon: .3, Scale: Unit}}
	in := k.inputs(rand.New(rand.NewPCG(53, 3)))
	near := in[0].Data.([]int32)
	for i, n := range near {
		near[i] = min(n, 38)
	}
	optest.CheckCUDA(t, []optest.Case{{Name: "a bad row", Inputs: in, WRT: []int{1, 2, 3, 4}, GEMM: true, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
		a := k.args(ns)
		a.Pool.(*testPool).bad = 39
		return Pooled(a)
	}}}, "pool rows")
}
