package geodesic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestFloydVector by hand: a line of four centres with edges of 0.5, and one apart. The
// path along the line is 1.5, the one apart is out of reach and its score -1.
func TestFloydVector(t *testing.T) {
	d := make([]float32, 25)
	clearPaths(d, 5)
	for i := range 3 {
		d[i*5+i+1], d[(i+1)*5+i] = .5, .5
	}
	list := listOf(d, 5)
	Floyd(d, 5, 5)
	if d[3] != 1.5 || d[15] != 1.5 || !math.IsInf(float64(d[4]), 1) || d[24] != 0 {
		t.Fatalf("paths %v", d)
	}
	if s := Score(d[4], DefaultLimit); s != -1 {
		t.Fatalf("score %v of a point out of reach", s)
	}
	if got := dijkstraAll(list, 5); got[3] != 1.5 || !math.IsInf(float64(got[4]), 1) {
		t.Fatalf("Dijkstra: %v", got)
	}
}

func dijkstraAll(list edges, n int) []float32 {
	d := make([]float32, n*n)
	clearPaths(d, n)
	h := heap{at: make([]int32, n)}
	for i := range h.at {
		h.at[i] = -1
	}
	for i := range n {
		h.dijkstra(&list, int32(i), d[i*n:(i+1)*n])
	}
	return d
}

// Floyd in tiles, on one thread and on three, and Dijkstra agree with three plain loops in
// float64, for sizes around those of tiles, sparse and dense, within a larger matrix.
func TestFloydAndDijkstra(t *testing.T) {
	e := engine(t, 3)
	for _, n := range []int{1, 2, 5, 63, 64, 65, 130, 200} {
		for _, degree := range []int{0, 1, 2, 8, n} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(degree)))
			d, list := randomGraph(n, degree, r)
			want := wide(d)
			for k := range n {
				for i := range n {
					for j := range n {
						want[i*n+j] = min(want[i*n+j], want[i*n+k]+want[k*n+j])
					}
				}
			}
			stride := n + 3
			inside, threads := make([]float32, n*stride), make([]float32, n*stride)
			for i := range n {
				copy(inside[i*stride:], d[i*n:(i+1)*n])
				for j := n; j < stride; j++ {
					inside[i*stride+j] = -7
				}
			}
			copy(threads, inside)
			Floyd(inside, n, stride)
			var tl tiles
			tl.init()
			tl.floyd(e, threads, n, stride)
			plain := dijkstraAll(list, n)
			for i := range n {
				for j := range stride {
					at := i*stride + j
					if threads[at] != inside[at] {
						t.Fatalf("n=%d: threads change [%d][%d]: %v, %v", n, i, j, inside[at], threads[at])
					}
					if j >= n {
						if inside[at] != -7 {
							t.Fatalf("n=%d: wrote beside the matrix", n)
						}
						continue
					}
					if !near(inside[at], want[i*n+j]) || !near(plain[i*n+j], want[i*n+j]) {
						t.Fatalf("n=%d degree=%d: [%d][%d] is %v by Floyd, %v by Dijkstra, want %v", n, degree, i, j, inside[at], plain[i*n+j], want[i*n+j])
					}
				}
			}
		}
	}
}

// The rule takes Dijkstra for large sparse graphs, and Floyd for small or dense ones.
func TestSparse(t *testing.T) {
	for _, c := range []struct {
		n, entries int
		want       bool
	}{{16, 16 * 9, false}, {256, 256 * 10, false}, {4096, 4096 * 10, true}, {4096, 4096 * 4095, false}} {
		if got := sparse(c.n, c.entries); got != c.want {
			t.Errorf("sparse(%d, %d) is %t", c.n, c.entries, got)
		}
	}
}

// Graphs for which Dijkstra is taken have the paths that Floyd finds.
func TestShortestBySparsity(t *testing.T) {
	if testing.Short() {
		t.Skip("Floyd over thousands of centres")
	}
	const n, c = 2100, 3
	g := check.Get(New(n, c, Options{Layers: []int{n}, Neighbours: 2}))(t)
	copy(g.Centres, mixture(n, c, n, 0, rand.New(rand.NewPCG(1, 3))))
	g.Layers[0].Used = n
	if !sparse(n, 4*n) {
		t.Fatal("the rule takes Floyd: use more centres")
	}
	g.Relink(engine(t, 2))
	floyd := make([]float32, n*n)
	clearPaths(floyd, n)
	for i := range n {
		to, angle := g.Layers[0].Neighbours(i)
		for e, j := range to {
			floyd[i*n+int(j)] = angle[e]
		}
	}
	Floyd(floyd, n, n)
	far := 0
	for i, d := range g.Paths {
		// Hundreds of sums in float32, in another order.
		if e := math.Abs(float64(d - floyd[i])); e > 1e-4 && !math.IsInf(float64(d), 1) || math.IsInf(float64(d), 1) != math.IsInf(float64(floyd[i]), 1) {
			t.Fatalf("path %d: %v by Dijkstra, %v by Floyd", i, d, floyd[i])
		}
		if d > 1 && !math.IsInf(float64(d), 1) {
			far++
		}
	}
	if far == 0 {
		t.Fatal("no long path")
	}
}

// Edges are the union of the choices of both ends, by hand: five centres on an arc at 0,
// 10, 30, 32 and 90 degrees with one neighbour each. 0-10 and 30-32 choose each other, 90
// chooses 32, and no edge joins 10 and 30.
func TestNeighbours(t *testing.T) {
	degrees := []float64{0, 10, 30, 32, 90}
	g := check.Get(New(5, 2, Options{Layers: []int{5}, Neighbours: 1}))(t)
	for i, d := range degrees {
		g.Centres[2*i], g.Centres[2*i+1] = float32(math.Cos(d*math.Pi/180)), float32(math.Sin(d*math.Pi/180))
	}
	g.Layers[0].Used = 5
	g.Relink(engine(t, 1))
	for i, want := range [][]int32{{1}, {0}, {3}, {2, 4}, {3}} {
		to, angle := g.Layers[0].Neighbours(i)
		if len(to) != len(want) {
			t.Fatalf("centre %d has neighbours %v, want %v", i, to, want)
		}
		for e, j := range to {
			if j != want[e] || !near(angle[e], math.Abs(degrees[i]-degrees[j])*math.Pi/180) {
				t.Fatalf("centre %d has neighbours %v at %v, want %v", i, to, angle, want)
			}
		}
	}
	if !math.IsInf(float64(g.Paths[1*5+2]), 1) || !near(g.Paths[2*5+4], 60*math.Pi/180) {
		t.Fatalf("paths %v", g.Paths)
	}
}
