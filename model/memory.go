package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"gorgonia.org/gorgonia"
)

// past makes the queue and the graphs over it inputs of a step.
type past struct{ p *Trainer }

var _ objectives.Memory = (*past)(nil)

// Banks implements objectives.Memory. Where an objective reads the graphs over the queue,
// and in systems of views, the columns are those of the queue once the batch has entered it.
func (m *past) Banks(s *objectives.Step) *objectives.Banks {
	p, q := m.p, m.p.queue
	x := &objectives.Banks{Positives: objectives.Positives{Labels: s.Own()},
		GraphActive: func() bool { return p.graphs != nil && p.graphs.active() }}
	if p.design.views {
		x.Image = &objectives.Bank{Keys: s.Gather(s.Teacher.Text.Features), Local: s.Scores.Space} // of the other view
	} else {
		x.Image = &objectives.Bank{Keys: s.Gather(s.Teacher.Image.Features), Local: s.Scores.Space}
		x.Text = &objectives.Bank{Keys: s.Gather(s.Teacher.Text.Features), Local: s.Scores.Space}
	}
	if q == nil {
		if s.IDs != nil {
			x.Positives = objectives.Positives{RowIDs: s.IDs, ColIDs: s.Gather(s.IDs)}
		}
		return x
	}
	x.Size = q.size
	m.rings(s, x)
	f := m.inputs(s, x)
	s.Read(batch.Column{Name: batch.IDs, Type: batch.Int32})
	s.OnFill(func(at *feed.Step) error { return f.fill(p, at) })
	return x
}

// rings adds the rings of the queue and the graphs over them.
func (m *past) rings(s *objectives.Step, x *objectives.Banks) {
	q, g := m.p.queue, m.p.graphs
	ring := func(name string, rows []float32) *gorgonia.Node {
		if rows == nil {
			return nil
		}
		return s.SharedFloats(name, rows, q.size, len(rows)/q.size)
	}
	x.Image.Queue = ring("image queue", q.Image)
	x.ImageBackbone = ring("image backbone queue", q.ImageBackbone)
	x.TextBackbone = ring("text backbone queue", q.TextBackbone)
	if g != nil {
		x.Image.Graph = graphInputs(s.Inputs, "image", g.Image, g.counts[:1])
	}
	if x.Text == nil {
		return
	}
	x.Text.Queue = ring("text queue", q.Text)
	if g != nil {
		x.Text.Graph = graphInputs(s.Inputs, "text", g.Text, g.counts[1:])
	}
}

// pastFill is the memory of what says which columns exist and whose they are.
type pastFill struct {
	cols, pointer, filled, usable [1]int32
	own, ids                      []int32 // ids of all columns; nil where pairs are told by their place
	batch                         []int32 // ids of the batch that the columns begin with, of all processes
	rows                          int     // of it
	pool                          bool
}

// inputs adds them.
func (m *past) inputs(s *objectives.Step, x *objectives.Banks) *pastFill {
	q := m.p.queue
	f := &pastFill{pool: m.p.graphs != nil || m.p.design.views, rows: s.All()}
	cols := s.SharedInts("columns", f.cols[:])
	x.Image.Cols = cols
	x.Filled, x.Usable = s.SharedInts("filled entries", f.filled[:]), s.SharedInts("usable entries", f.usable[:])
	columns := f.rows + q.size
	if f.pool {
		columns = q.size
		f.own = make([]int32, f.rows)
		pointer := s.SharedInts("pointer", f.pointer[:])
		x.Own = s.SharedInts("own entries", f.own[s.First():][:s.Rows], s.Rows)
		x.Positives = objectives.Positives{Labels: x.Own}
		x.Image.Pointer = pointer
		if f.rows > s.Rows {
			x.Image.Places = s.Count("columns of a pool", 0, q.size, 1)
		}
	}
	if x.Text != nil {
		x.Text.Cols, x.Text.Pointer, x.Text.Places = cols, x.Image.Pointer, x.Image.Places
	}
	if s.IDs != nil {
		f.ids = make([]int32, columns)
		x.Positives = objectives.Positives{RowIDs: s.IDs, ColIDs: s.SharedInts("column ids", f.ids, columns)}
	}
	return f
}

// fill says for a step where the batch enters the queue, which entries exist, and whether
// the graphs are read. A step that does not read the queue has its batch in the first
// entries of a pool and no others.
func (f *pastFill) fill(p *Trainer, at *feed.Step) (err error) {
	q, use := p.queue, at.Update >= p.cfg.Queue.StartSteps
	f.filled[0], f.usable[0] = int32(q.Filled), 0
	if use {
		f.usable[0] = int32(q.Filled)
	}
	if f.ids != nil {
		if own := at.Batch.Ints(batch.IDs); len(own) == f.rows {
			f.batch = append(f.batch[:0], own...)
		} else if f.batch, err = p.o.Group.GatherInts(f.batch[:0], own); err != nil {
			return err
		}
	}
	if !f.pool {
		f.cols[0] = int32(f.rows) + f.usable[0]
		if f.ids != nil {
			copy(f.ids[copy(f.ids, f.batch):], q.IDs)
		}
		return nil
	}
	f.pointer[0], f.cols[0] = q.enter(f.own, use)
	if f.ids != nil {
		copy(f.ids, q.IDs)
		for i, own := range f.own {
			f.ids[own] = f.batch[i]
		}
	}
	if p.graphs != nil {
		p.graphs.activate(use)
	}
	return nil
}

// enter says where a batch is in the pool of a step (Mei et al., algorithm 2, line 13): own
// (B) receives its rows, the first of them is pointer, and the pool has cols rows. A step
// that does not use the queue has its batch in the first rows and no others.
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

// graphInputs are the inputs that hold a graph x over the queue of a modality, whose memory
// stays put for life. count (1) is the number of centres that the scores of a step may use.
func graphInputs(in *feed.Inputs, modality string, x *geodesic.Graph, count []int32) *objectives.Graph {
	n, k := len(x.Owner), len(x.Layers[len(x.Layers)-1].Parent)
	name := func(what string) string { return modality + " graph " + what }
	return &objectives.Graph{
		Centres: in.SharedFloats(name("centres"), x.Centres, k, len(x.Centres)/k),
		Paths:   in.SharedFloats(name("paths"), x.Paths, k, k),
		Owner:   in.SharedInts(name("owners"), x.Owner, n),
		Reach:   in.SharedFloats(name("reaches"), x.Reach, n),
		Count:   in.SharedInts(name("count"), count),
	}
}

// keyNodes are what enters the queue with a batch; nil what it does not keep.
type keyNodes struct{ image, text, imageBackbone, textBackbone *gorgonia.Node }

// teacherKeys are the teacher's features of both sides, and what its heads read where the
// queue keeps it.
func teacherKeys(cfg config.Config) func(s *objectives.Step) keyNodes {
	g := cfg.Objective.Geometric
	backbone := func(s *objectives.Step, x objectives.Side, wanted bool) *gorgonia.Node {
		if !wanted || !cfg.Has(section.BackboneQueue) {
			return nil
		}
		return s.Backbone(x)
	}
	return func(s *objectives.Step) keyNodes {
		return keyNodes{
			image: s.Teacher.Image.Features, text: s.Teacher.Text.Features,
			imageBackbone: backbone(s, s.Teacher.Image, g.Images()),
			textBackbone:  backbone(s, s.Teacher.Text, g.Texts()),
		}
	}
}

// nodes lists those that are there.
func (k keyNodes) nodes() (list gorgonia.Nodes) {
	for _, n := range []*gorgonia.Node{k.image, k.text, k.imageBackbone, k.textBackbone} {
		if n != nil {
			list = append(list, n)
		}
	}
	return list
}

// read returns their values after a run.
func (k keyNodes) read(m *exec.Machine) (_ Keys, err error) {
	value := func(n *gorgonia.Node) []float32 {
		if n == nil || err != nil {
			return nil
		}
		a, failed := m.Value(n)
		err = failed
		return a.F32
	}
	return Keys{value(k.image), value(k.text), value(k.imageBackbone), value(k.textBackbone)}, err
}
