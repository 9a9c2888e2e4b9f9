package model

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// poolInputs are the inputs through which a step of images alone reads the queue and the
// graph over it. What a step does not read is nil.
type poolInputs struct {
	batch   int
	queue   *gorgonia.Node // (Q, C)
	pointer *gorgonia.Node // where the batch enters the queue
	cols    *gorgonia.Node // entries that exist with the batch in the queue
	rows    *gorgonia.Node // entries that exist without it
	own     *gorgonia.Node // (B) int32, the entries that the batch takes
	graph   *objectives.Graph
	host    struct {
		pointer, cols, rows [1]int32
		own                 []int32
	}
}

// newPool makes the inputs for the queue of v, and for the graph over it if there is one.
func (s *viewsBuilder) newPool() *poolInputs {
	v, p := s.v, &s.v.train.pool
	p.batch = v.train.batch
	p.own = s.ints("own entries", p.batch)
	p.host.own = iota32(0, p.batch, 1)
	if v.queue == nil {
		return p
	}
	n, c := v.queue.size, v.head.Out
	p.queue = s.floats("queue", n, c)
	p.pointer, p.cols, p.rows = s.ints("pointer"), s.ints("columns"), s.ints("entries")
	if v.graphs != nil {
		layers := v.cfg.Objective.Geodesic.Layers
		k := layers[len(layers)-1]
		p.graph = &objectives.Graph{
			Centres: s.floats("graph centres", k, c), Paths: s.floats("graph paths", k, k),
			Owner: s.ints("graph owners", n), Reach: s.floats("graph reaches", n), Count: s.ints("graph count"),
		}
	}
	return p
}

// bind ties the inputs to their memory.
func (p *poolInputs) bind(m *exec.Machine, v *Views) (err error) {
	set := func(n *gorgonia.Node, data any) {
		if n != nil && err == nil {
			err = m.SetInput(n, data)
		}
	}
	set(p.own, p.host.own)
	set(p.pointer, p.host.pointer[:])
	set(p.cols, p.host.cols[:])
	set(p.rows, p.host.rows[:])
	if v.queue != nil {
		set(p.queue, v.queue.Image)
	}
	if g := p.graph; g != nil {
		x := v.graphs.Image
		set(g.Centres, x.Centres)
		set(g.Paths, x.Paths)
		set(g.Owner, x.Owner)
		set(g.Reach, x.Reach)
		set(g.Count, v.graphs.counts[:1])
	}
	return err
}

// load says for a step where the batch enters the queue, which entries exist, and whether
// the graph is read. A step that does not read the queue has its batch in the first
// entries and no others.
func (p *poolInputs) load(v *Views, c Control) {
	q, h := v.queue, &p.host
	if q == nil {
		return
	}
	h.pointer[0], h.cols[0], h.rows[0] = 0, int32(p.batch), 0
	if c.UseQueue {
		h.pointer[0], h.rows[0] = int32(q.Pointer), int32(q.Filled)
		h.cols[0] = int32(min(q.size, q.Filled+p.batch))
	}
	for i := range h.own {
		h.own[i] = (h.pointer[0] + int32(i)) % int32(q.size)
	}
	if v.graphs != nil {
		v.graphs.activate(c.UseQueue)
	}
}
