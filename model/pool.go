package model

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/geodesic"
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
		p.graph = s.graphInputs("image", v.graphs.Image)
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
	if p.graph != nil {
		bindGraph(set, p.graph, v.graphs.Image, v.graphs.counts[:1])
	}
	return err
}

// graphInputs are the inputs that hold a graph x over the queue of a modality.
func (b *graph) graphInputs(modality string, x *geodesic.Graph) *objectives.Graph {
	n, k := len(x.Owner), len(x.Layers[len(x.Layers)-1].Parent)
	in := func(what string) string { return modality + " graph " + what }
	return &objectives.Graph{
		Centres: b.floats(in("centres"), k, len(x.Centres)/k), Paths: b.floats(in("paths"), k, k),
		Owner: b.ints(in("owners"), n), Reach: b.floats(in("reaches"), n), Count: b.ints(in("count")),
	}
}

// bindGraph ties the inputs of a graph to its memory, which stays put for life. count (1)
// is the number of centres that the scores of a step may use.
func bindGraph(set func(n *gorgonia.Node, data any), in *objectives.Graph, x *geodesic.Graph, count []int32) {
	set(in.Centres, x.Centres)
	set(in.Paths, x.Paths)
	set(in.Owner, x.Owner)
	set(in.Reach, x.Reach)
	set(in.Count, count)
}

// enter says where a batch is in the pool of a step: own (B) receives its rows, the
// first of them is pointer, and the pool has cols rows. A step that does not use the
// queue has its batch in the first rows and no others.
func (q *Queue) enter(own []int32, use bool) (pointer, cols int32) {
	cols = int32(len(own))
	if use {
		pointer, cols = int32(q.Pointer), int32(min(q.size, q.Filled+len(own)))
	}
	for i := range own {
		own[i] = (pointer + int32(i)) % int32(q.size)
	}
	return pointer, cols
}

// load says for a step where the batch enters the queue, which entries exist, and whether
// the graph is read. A step that does not read the queue has its batch in the first
// entries and no others.
func (p *poolInputs) load(v *Views, c Control) {
	q, h := v.queue, &p.host
	if q == nil {
		return
	}
	h.pointer[0], h.cols[0] = q.enter(h.own, c.UseQueue)
	h.rows[0] = 0
	if c.UseQueue {
		h.rows[0] = int32(q.Filled)
	}
	if v.graphs != nil {
		v.graphs.activate(c.UseQueue)
	}
}
