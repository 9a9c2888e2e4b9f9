package geodesic

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkPaths compares Floyd with Dijkstra from each centre; floydStep, dijkstraEdge
// and dijkstraNode come from here, on one thread.
func BenchmarkPaths(b *testing.B) {
	for _, n := range []int{16, 64, 256, 512, 1024} {
		for _, degree := range []int{4, 8, 32} {
			if degree*2 > n {
				continue
			}
			d, list := randomGraph(n, degree, rand.New(rand.NewPCG(1, 1)))
			work := make([]float32, len(d))
			b.Run(fmt.Sprintf("floyd/K=%d/neighbours=%d", n, degree), func(b *testing.B) {
				for b.Loop() {
					copy(work, d)
					Floyd(work, n, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n*n*n), "ns/step")
			})
			h := heap{nodes: make([]int32, 0, n), at: make([]int32, n)}
			for i := range h.at {
				h.at[i] = -1
			}
			b.Run(fmt.Sprintf("dijkstra/K=%d/neighbours=%d", n, degree), func(b *testing.B) {
				for b.Loop() {
					clearPaths(work, n)
					for i := range n {
						h.dijkstra(&list, int32(i), work[i*n:(i+1)*n])
					}
				}
			})
		}
	}
}

// randomGraph returns n points joined to their nearest neighbours on a circle of random
// angles and to random others, as a matrix and as lists.
func randomGraph(n, degree int, r *rand.Rand) ([]float32, edges) {
	d := make([]float32, n*n)
	clearPaths(d, n)
	for i := range n {
		for range degree {
			j := r.IntN(n)
			if j != i {
				w := .5 + r.Float32()
				d[i*n+j], d[j*n+i] = w, w
			}
		}
	}
	return d, listOf(d, n)
}

func listOf(d []float32, n int) edges {
	l := edges{start: make([]int32, n+1)}
	for i := range n {
		for j := range n {
			if w := d[i*n+j]; i != j && w < 100 {
				l.to, l.angle = append(l.to, int32(j)), append(l.angle, w)
			}
		}
		l.start[i+1] = int32(len(l.to))
	}
	return l
}
