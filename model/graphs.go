package model

import (
	"fmt"

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
	Image, Text *geodesic.Graph
	Begun       int      // step at which the newest graphs were begun; -1 without any
	Pending     *Pending // graphs that are not switched in yet, or nil

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

// share has ranks share the builds that the steps wait for. One beside the steps each makes for itself: what is exchanged there
// would meet that of the steps.
func (g *Graphs) share(ranks parallel.Group) {
	g.Image.Share(ranks)
	if g.Text != nil {
		g.Text.Share(ranks)
	}
}

// newGraphs returns the graphs of a queue of features of a space, none of them built.
func newGraphs(cfg config.Config, space space.Space, q *Queue, e *kernel.Engine) (_ *Graphs, err error) {
	g := &Graphs{Begun: -1, queue: q, engine: e, cfg: cfg.Objective.Geodesic, space: space, seed: cfg.Run.Seed}
	if g.Image, err = g.empty(); err != nil {
		return nil, err
	}
	if q.Text != nil {
		g.Text, err = g.empty()
	}
	return g, err
}

func (g *Graphs) empty() (*geodesic.Graph, error) {
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
	if err := g.build(g.engine, &Pending{Image: g.Image, Text: g.Text, Begun: step, imageRows: g.queue.Image, textRows: g.queue.Text}); err != nil {
		return err
	}
	g.Begun = step
	g.Describe()
	return nil
}

// build builds both graphs of p over their rows.
func (g *Graphs) build(e *kernel.Engine, p *Pending) error {
	r := rng.New(g.seed, rng.KMeans, uint64(p.Begun))
	if _, err := p.Image.Build(e, p.imageRows, r); err != nil {
		return fmt.Errorf("model: graph over the image queue: %w", err)
	}
	if p.Text == nil {
		return nil
	}
	if _, err := p.Text.Build(e, p.textRows, r); err != nil {
		return fmt.Errorf("model: graph over the text queue: %w", err)
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
	for _, m := range []struct {
		graph *geodesic.Graph
		rows  []float32
	}{{g.Image, g.queue.Image}, {g.Text, g.queue.Text}} {
		if m.graph == nil {
			continue
		}
		m.graph.Attach(g.engine, m.rows[at*dim:][:n*dim], m.graph.Owner[at:][:n], m.graph.Reach[at:][:n])
	}
}

// activate sets whether the scores of a step read the graphs.
func (g *Graphs) activate(on bool) {
	g.counts = [2]int32{}
	if on && g.Begun >= 0 {
		g.counts[0] = int32(g.Image.Used)
		if g.Text != nil {
			g.counts[1] = int32(g.Text.Used)
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
