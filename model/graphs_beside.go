package model

import (
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/geodesic"
)

// Pending is a pair of graphs under construction, mostly beside the steps.
type Pending struct {
	Image, Text *geodesic.Graph
	Begun       int // step of the copy of the queue
	Pointer     int // of the queue at that step
	Pushed      int // entries written since then

	imageRows, textRows []float32 // what they are over: beside the steps a copy of the rings
	done                chan error
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
		p = &Pending{imageRows: make([]float32, len(g.queue.Image)), textRows: make([]float32, len(g.queue.Text)), done: make(chan error, 1)}
		if p.Image, err = g.empty(); err != nil {
			return err
		}
		if g.Text != nil {
			if p.Text, err = g.empty(); err != nil {
				return err
			}
		}
	}
	g.spare, g.Pending = nil, p
	p.Begun, p.Pointer, p.Pushed = step, g.queue.Pointer, 0
	copy(p.imageRows, g.queue.Image)
	copy(p.textRows, g.queue.Text)
	p.Image.CopyFrom(g.Image) // where a warm start begins
	if g.Text != nil {
		p.Text.CopyFrom(g.Text)
	}
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

// switchIn puts the pending graphs in the place of the current ones and attaches what
// entered the queue since their copy was made.
func (g *Graphs) switchIn() error {
	if err := g.Wait(); err != nil {
		return err
	}
	p := g.Pending
	g.Image.CopyFrom(p.Image)
	if g.Text != nil {
		g.Text.CopyFrom(p.Text)
	}
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
