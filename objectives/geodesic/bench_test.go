package geodesic

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/space"
)

// BenchmarkBuild is a rebuild over N points of 256 channels with K bottom centres and 5
// iterations. gflops counts the products of the clustering alone, 2*N*K*C for each of the
// iterations and the last assignment.
func BenchmarkBuild(b *testing.B) {
	const c = 256
	e := check.Get(kernel.New(kernel.Options{}))(b)
	defer e.Close()
	for _, n := range []int{4096, 16384, 65536} {
		x := mixture(n, c, 2000, .6, rand.New(rand.NewPCG(1, 1)))
		for _, o := range []Options{{Layers: []int{64}}, {Layers: []int{256}}, {Layers: []int{16, 256}}, {Layers: []int{16, 256}, Split: true}, {Layers: []int{16, 256}, WarmStart: true}, {Layers: []int{1024}}} {
			k := o.Layers[len(o.Layers)-1]
			b.Run(fmt.Sprintf("N=%d/layers=%v/split=%t/warm=%t", n, o.Layers, o.Split, o.WarmStart), func(b *testing.B) {
				g, _ := build(b, e, x, n, c, o, 1)
				r := rand.New(rand.NewPCG(1, 1))
				for b.Loop() {
					check.Get(g.Build(e, x, r))(b)
				}
				if !o.Split {
					b.ReportMetric(6*2*float64(n*k*c)*float64(b.N)/b.Elapsed().Seconds()/1e9, "gflops")
				}
			})
		}
	}
}

// BenchmarkAttach is what a step of 64 new points costs at the default sizes, and
// BenchmarkFrom the distances of 64 points to the pool.
func BenchmarkAttach(b *testing.B) {
	g, e, x := stepGraph(b)
	owner, reach := make([]int32, 64), make([]float32, 64)
	for b.Loop() {
		g.Attach(e, x[:64*g.channels], owner, reach)
		g.Insert(0, owner, reach)
	}
}

func BenchmarkFrom(b *testing.B) {
	g, e, x := stepGraph(b)
	dst := make([]float32, 64*g.points)
	for b.Loop() {
		g.From(e, x[:64*g.channels], dst)
	}
}

func stepGraph(b *testing.B) (*Graph, *kernel.Engine, []float32) {
	const n, c = 65536, 256
	e := check.Get(kernel.New(kernel.Options{}))(b)
	b.Cleanup(e.Close)
	x := mixture(n, c, 2000, .6, rand.New(rand.NewPCG(1, 1)))
	g, _ := build(b, e, x, n, c, Options{Layers: []int{16, 256}, Iterations: 1}, 1)
	return g, e, x
}

// BenchmarkBuildTopologies is a rebuild of 4096 points of 256 channels with 64 bottom centres
// under each local metric: one sphere, Ob(16,16), and Euclidean rows.
func BenchmarkBuildTopologies(b *testing.B) {
	const n, c = 4096, 256
	e := check.Get(kernel.New(kernel.Options{}))(b)
	defer e.Close()
	for _, m := range []Options{{Space: space.Space{Spheres: 1}}, {Space: space.Space{Spheres: 16}}, {Space: space.Space{Euclid: true}, Limit: 10}} {
		for _, layers := range [][]int{{64}, {8, 64}} {
			o := Options{Layers: layers}.with(m)
			b.Run(fmt.Sprintf("%s/layers=%v", m.topology(), layers), func(b *testing.B) {
				x := o.mixture(n, c, 500, .6, rand.New(rand.NewPCG(1, 1)))
				g, _ := build(b, e, x, n, c, o, 1)
				r := rand.New(rand.NewPCG(1, 1))
				for b.Loop() {
					check.Get(g.Build(e, x, r))(b)
				}
			})
		}
	}
}
