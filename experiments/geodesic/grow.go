package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives/geodesic"
)

// growth measures what a graph and the scores through it cost at growing sizes.
type growth struct {
	engine           *compute.Engine
	channels, batch  int
	repeats          int
	points, clusters []int
	at               int
}

// size is what was measured at one size, times in seconds, memory in bytes.
type size struct {
	points, clusters int
	first, rebuild   float64 // the first build, and one that starts from its centres
	geodesic, cosine float64 // scores of a batch, forward and backward, one direction
	attach           float64 // a batch enters the graph
	graph            int64   // memory that the graph holds between rebuilds
	scores           int64   // memory of the geodesic step beyond the cosine's
}

// cache is the memory of the paper's table of distances of all points to all centres.
func (s size) cache() float64 { return 4 * float64(s.points) * float64(s.clusters) }

// defaultK is the number of bottom centres while the pool grows.
const defaultK = 256

func (g growth) run(w io.Writer, out string) error {
	manifold := newMixture(g.channels, 1)
	var byPoints, byClusters []size
	for _, n := range g.points {
		list, err := g.measure(manifold, n, []int{min(defaultK, n/4)})
		if err != nil {
			return err
		}
		byPoints = append(byPoints, list...)
	}
	if len(g.clusters) > 0 {
		var err error
		if byClusters, err = g.measure(manifold, g.at, g.clusters); err != nil {
			return err
		}
	}
	o := config.Default().Objective.Geodesic
	fmt.Fprintf(w, "Two layers of sqrt(K) and K centres, C = %d, %d iterations of k-means from the last centres, B = %d, gradient %s. Best of %d.\n",
		g.channels, o.Iterations, g.batch, o.Gradient, g.repeats)
	for _, list := range [][]size{byPoints, byClusters} {
		if len(list) > 0 {
			fmt.Fprintln(w)
			printSizes(w, list)
		}
	}
	if out == "" {
		return nil
	}
	return drawGrowth(out, byPoints, byClusters)
}

// measure measures one pool with several numbers of bottom centres.
func (g growth) measure(m *mixture, n int, clusters []int) ([]size, error) {
	queue := m.rows(n, 2)
	keys := m.rows(g.batch, 3)
	features := beside(keys, g.channels, .7, 4)
	dy := contrastGradient(g.batch, n)
	var list []size
	for _, k := range clusters {
		s := size{points: n, clusters: k}
		graph, err := g.build(&s, queue)
		if err != nil {
			return nil, err
		}
		bind := map[string]any{"f": features, "keys": keys, "dy": dy}
		if err := g.steps(&s, queue, graph, bind); err != nil {
			return nil, err
		}
		owner, reach := make([]int32, g.batch), make([]float32, g.batch)
		s.attach, err = best(g.repeats, func() error {
			graph.Attach(g.engine, keys, owner, reach)
			graph.Insert(0, owner, reach)
			return nil
		})
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// build builds a graph as a run with the default configuration does.
func (g growth) build(s *size, queue []float32) (*geodesic.Graph, error) {
	o := config.Default().Objective.Geodesic
	before := held()
	graph, err := geodesic.New(s.points, g.channels, geodesic.Options{
		Layers: []int{int(math.Round(math.Sqrt(float64(s.clusters)))), s.clusters}, Neighbours: o.Neighbours,
		Iterations: o.Iterations, Init: o.KMeansInit, WarmStart: o.WarmStart,
	})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(5, 6))
	rebuild := func() error {
		_, err := graph.Build(g.engine, queue, r)
		return err
	}
	if s.first, err = best(1, rebuild); err != nil {
		return nil, err
	}
	if s.rebuild, err = best(g.repeats, rebuild); err != nil {
		return nil, err
	}
	s.graph = held() - before
	return graph, nil
}

// steps measures the scores of a batch and their gradient.
func (g growth) steps(s *size, queue []float32, graph *geodesic.Graph, bind map[string]any) error {
	var memory [2]int64
	for i, mode := range []string{config.Default().Objective.Geodesic.Gradient, cosine} {
		step, err := newStep(stepOptions{engine: g.engine, batch: g.batch, channels: g.channels, size: s.points,
			mode: mode}, queue, graph)
		if err != nil {
			return err
		}
		if err := step.set(bind); err != nil {
			return err
		}
		if err := step.machine.RunAll(); err != nil { // touches its memory
			return err
		}
		seconds, err := best(5*g.repeats, step.machine.RunAll)
		if err != nil {
			return err
		}
		*[]*float64{&s.geodesic, &s.cosine}[i] = seconds
		memory[i] = step.machine.Memory()
		step.machine.Close()
	}
	s.scores = memory[0] - memory[1]
	return nil
}

// contrastGradient is a gradient like that of a contrast of n entries: -1 for the
// positive of each row, its first B entries being the batch, and small positive numbers
// that sum to 1 for the rest.
func contrastGradient(batch, n int) []float32 {
	r := rand.New(rand.NewPCG(7, 8))
	dy := make([]float32, batch*n)
	for i := range batch {
		for j := range n {
			dy[i*n+j] = 2 * r.Float32() / float32(n)
		}
		dy[i*n+i] -= 1
	}
	return dy
}

// best returns the seconds of the fastest of n calls.
func best(n int, f func() error) (float64, error) {
	var times []time.Duration
	for range n {
		begin := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(begin))
	}
	return slices.Min(times).Seconds(), nil
}

// held returns the bytes of the heap that are in use.
func held() int64 {
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// printSizes writes a table. The extra memory, of the graph between rebuilds and of the
// step beyond the cosine's, is set beside the table of distances of all points
// to all centres that the paper keeps.
func printSizes(w io.Writer, list []size) {
	fmt.Fprint(w, "| N | K | first build s | rebuild s | geodesic ms | cosine ms | ratio | insert ms | extra MB | N x K floats MB |\n")
	fmt.Fprint(w, "| --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, s := range list {
		fmt.Fprintf(w, "| %d | %d | %.3f | %.3f | %.2f | %.2f | %.2f | %.3f | %.1f | %.1f |\n", s.points, s.clusters,
			s.first, s.rebuild, 1e3*s.geodesic, 1e3*s.cosine, s.geodesic/s.cosine, 1e3*s.attach,
			float64(s.graph+s.scores)/1e6, s.cache()/1e6)
	}
}
