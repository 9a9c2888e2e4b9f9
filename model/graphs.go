package model

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"github.com/geoalign/geoalign/space"
)

// Graphs are the hierarchical graphs over the rings of a queue, one for each modality,
// which never share one (Mei et al., algorithm 2). Text is nil where the queue holds images
// alone. The first graphs are built when the queue is full; from then on a rebuild begins
// every period. With a lag it runs beside the steps on a copy of the queue and is switched
// in after that many of them: at a step that the clock has no say in, so that runs
// reproduce. Several processes have the same graphs and share the work of those that the steps wait for.
type Graphs struct {
	graphPair
	Begun   int      // step at which the newest graphs were begun; -1 without any
	Pending *Pending // graphs that are not switched in yet, or nil

	queue  *Queue
	engine *kernel.Engine
	beside *kernel.Engine // of rebuilds beside the steps, made when first needed
	cfg    objectives.Geodesic
	space  space.Space // of the features
	seed   uint64
	spare  *Pending // memory of the next rebuild beside the steps
	counts [2]int32 // centres that the scores of a step may use, see activate
	values []Part   // figures of the newest graphs, for the log
	state  graphsState
}

// share has ranks share the builds that the steps wait for. One beside the steps each makes for itself: what is
// exchanged there would meet that of the steps.
func (g *Graphs) share(ranks parallel.Group) {
	for _, x := range g.list() {
		x.Share(ranks)
	}
}

// newGraphs returns the graphs of a queue of features of a space, none of them built.
func newGraphs(cfg config.Config, space space.Space, q *Queue, e *kernel.Engine) (_ *Graphs, err error) {
	g := &Graphs{Begun: -1, queue: q, engine: e, cfg: cfg.Objective.Geodesic, space: space, seed: cfg.Run.Seed}
	g.graphPair, err = g.empty()
	return g, err
}

// graphPair is a graph for each modality. Text is nil where the queue holds images alone.
type graphPair struct{ Image, Text *geodesic.Graph }

// modalities are their names for people and checkpoints, in the order of list.
var modalities = [...]string{"image", "text"}

// list lists those that there are.
func (p graphPair) list() []*geodesic.Graph {
	if p.Text == nil {
		return []*geodesic.Graph{p.Image}
	}
	return []*geodesic.Graph{p.Image, p.Text}
}

// copyFrom takes the graphs of another pair.
func (p graphPair) copyFrom(from graphPair) {
	for i, x := range from.list() {
		p.list()[i].CopyFrom(x)
	}
}

// empty returns graphs for the queue, none of them built.
func (g *Graphs) empty() (p graphPair, err error) {
	if p.Image, err = g.emptyGraph(); err != nil || g.queue.Text == nil {
		return p, err
	}
	p.Text, err = g.emptyGraph()
	return p, err
}

func (g *Graphs) emptyGraph() (*geodesic.Graph, error) {
	x, err := geodesic.New(g.queue.size, g.queue.dim, geodesic.Options{
		Layers: g.cfg.Layers, Split: g.cfg.Construction == "split", Neighbours: g.cfg.Neighbours,
		Iterations: g.cfg.Iterations, Init: g.cfg.KMeansInit, WarmStart: g.cfg.WarmStart,
		Space: g.space, Limit: float32(g.cfg.Limit(g.space)),
	})
	if err != nil {
		return nil, fmt.Errorf("model: objective.geodesic: %w", err)
	}
	return x, nil
}

// before brings the graphs up to date for a step, named by the updates made before it.
func (g *Graphs) before(step int) error {
	switch {
	case g.queue.Filled < g.queue.size:
		return nil
	case g.Pending != nil && step >= g.Pending.Begun+g.cfg.LagSteps:
		return g.switchIn()
	case g.Pending != nil || g.Begun >= 0 && step < g.Begun+g.cfg.PeriodSteps:
		return nil
	case g.Begun >= 0 && g.cfg.LagSteps > 0:
		return g.begin(step)
	}
	if err := g.build(g.engine, &Pending{graphPair: g.graphPair, Begun: step, rows: g.queue.both()}); err != nil {
		return err
	}
	g.Begun = step
	g.Describe()
	return nil
}

// build builds both graphs of p over their rows.
func (g *Graphs) build(e *kernel.Engine, p *Pending) error {
	r := rng.New(g.seed, rng.KMeans, uint64(p.Begun))
	for i, x := range p.list() {
		if _, err := x.Build(e, p.rows[i], r); err != nil {
			return fmt.Errorf("model: graph over the %s queue: %w", modalities[i], err)
		}
	}
	return nil
}

// Reset forgets the graphs. A rebuild in progress is waited for.
func (g *Graphs) Reset() {
	if p := g.Pending; p != nil && p.done != nil {
		<-p.done // its error does not matter any more
		g.spare = p
	}
	g.Begun, g.Pending, g.values = -1, nil, g.values[:0]
}

// pushed attaches n entries that were written to the queue from row at on, without a
// wrap.
func (g *Graphs) pushed(at, n int) {
	if g.Pending != nil {
		g.Pending.Pushed += n
	}
	if g.Begun >= 0 {
		g.attach(at, n)
	}
}

// attach hangs n rows of the queue from row at on to their nearest centres.
func (g *Graphs) attach(at, n int) {
	if n == 0 {
		return
	}
	dim := g.queue.dim
	for i, x := range g.list() {
		x.Attach(g.engine, g.queue.both()[i][at*dim:][:n*dim], x.Owner[at:][:n], x.Reach[at:][:n])
	}
}

// activate sets whether the scores of a step read the graphs.
func (g *Graphs) activate(on bool) {
	g.counts = [2]int32{}
	if on && g.Begun >= 0 {
		for i, x := range g.list() {
			g.counts[i] = int32(x.Used)
		}
	}
}

// active says whether the scores of a step read the graphs.
func (g *Graphs) active() bool { return g.counts[0] > 0 }

// close ends a rebuild that is in progress.
func (g *Graphs) close() error {
	err := g.Wait()
	if g.beside != nil {
		g.beside.Close()
		g.beside = nil
	}
	return err
}

// Pending is a pair of graphs under construction, mostly beside the steps.
type Pending struct {
	graphPair
	Begun   int // step of the copy of the queue
	Pointer int // of the queue at that step
	Pushed  int // entries written since then

	rows [2][]float32 // what they are over: beside the steps a copy of the rings
	done chan error
}

// begin starts a rebuild beside the steps.
func (g *Graphs) begin(step int) (err error) {
	if g.beside == nil {
		// The built-in product on one thread: what it computes depends on nothing that the
		// steps do meanwhile.
		if g.beside, err = kernel.New(kernel.Options{Backend: "builtin", Threads: 1}); err != nil {
			return err
		}
	}
	p := g.spare
	if p == nil {
		p = &Pending{rows: [2][]float32{make([]float32, len(g.queue.Image)), make([]float32, len(g.queue.Text))},
			done: make(chan error, 1)}
		if p.graphPair, err = g.empty(); err != nil {
			return err
		}
	}
	g.spare, g.Pending = nil, p
	p.Begun, p.Pointer, p.Pushed = step, g.queue.Pointer, 0
	for i, rows := range g.queue.both() {
		copy(p.rows[i], rows)
	}
	p.copyFrom(g.graphPair) // where a warm start begins
	go func() {
		p.done <- g.build(g.beside, p)
	}()
	return nil
}

// Wait returns when no rebuild is in progress.
func (g *Graphs) Wait() error {
	if g.Pending == nil || g.Pending.done == nil {
		return nil
	}
	err := <-g.Pending.done
	g.Pending.done <- err // for the next to wait
	return err
}

// switchIn puts the pending graphs instead of the current ones and attaches what
// entered the queue since their copy was made.
func (g *Graphs) switchIn() error {
	if err := g.Wait(); err != nil {
		return err
	}
	p := g.Pending
	g.copyFrom(p.graphPair)
	n := min(p.Pushed, g.queue.size)
	g.attach(p.Pointer, min(n, g.queue.size-p.Pointer))
	g.attach(0, max(0, n-(g.queue.size-p.Pointer)))
	g.Begun, g.Pending = p.Begun, nil
	if p.done != nil {
		<-p.done
		g.spare = p
	}
	g.Describe()
	return nil
}

// Describe keeps the figures of the newest graphs for the log: graph/<modality>/<figure>.
func (g *Graphs) Describe() {
	g.values = g.values[:0]
	for i, x := range g.list() {
		s := x.Stats()
		components := 0
		for _, l := range s.Layers {
			components += l.Components
		}
		for _, v := range []Part{
			{Name: "centres", Value: float64(x.Used)},
			{Name: "components", Value: float64(components)},
			{Name: "usage_entropy", Value: s.Entropy},
			{Name: "mean_path", Value: s.Path},
			{Name: "unreachable", Value: s.Unreached},
			{Name: "truncated", Value: s.Truncated},
			{Name: "seconds", Value: s.Seconds},
		} {
			v.Name, v.Measure = "graph/"+modalities[i]+"/"+v.Name, true
			g.values = append(g.values, v)
		}
	}
}

// Figures returns the figures of the newest graphs that are finite numbers, by the names
// they have in the log. They describe the queue as it was when the graphs were switched
// in, so a checkpoint keeps them.
func (g *Graphs) Figures() map[string]float64 {
	figures := map[string]float64{}
	for _, v := range g.values {
		if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			figures[v.Name] = v.Value
		}
	}
	return figures
}
