package model

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/state"
)

// graphCounters are what a checkpoint holds of the graphs over a queue besides their
// tensors.
type graphCounters struct {
	Begun   int                `json:"begun"`   // step of the rebuild; -1: none so far
	Used    [2][]int           `json:"used"`    // centres in use of each layer of the image and the text graph
	Figures map[string]float64 `json:"figures"` // of the newest graphs, for the log
	Layers  []int              `json:"layers"`
	Pending *pendingCounters   `json:"pending,omitempty"`
}

// pendingCounters are those of a rebuild that is not switched in yet.
type pendingCounters struct {
	Begun   int      `json:"begun"`
	Pointer int      `json:"pointer"`
	Pushed  int      `json:"pushed"`
	Used    [2][]int `json:"used"`
}

// graphsState is what a save or a restore has in hand.
type graphsState struct {
	counters  graphCounters
	restoring bool     // CheckCounters has taken the counters
	build     bool     // they are not of these graphs: the next step builds them anew
	pending   *Pending // memory of the rebuild that is read
}

var (
	_ state.Preparer = (*Graphs)(nil)
	_ state.Part     = (*Graphs)(nil)
	_ state.Checker  = (*Graphs)(nil)
	_ state.Restorer = (*Graphs)(nil)
	_ state.Optional = (*Graphs)(nil)
)

// PrepareSave implements state.Preparer. A rebuild in progress is waited for: it goes into
// the checkpoint with its result, not with its copy of the queue.
func (g *Graphs) PrepareSave() error { return g.Wait() }

// StateName implements state.Part.
func (g *Graphs) StateName() string { return "graph" }

// StateVersion implements state.Part.
func (g *Graphs) StateVersion() int { return 1 }

// Counters implements state.Part.
func (g *Graphs) Counters() any {
	g.Wait() // its error is that of PrepareSave, and a restore forgets the rebuild
	c := graphCounters{Begun: g.Begun, Used: usedCentres(g.graphPair), Figures: g.Figures(),
		Layers: slices.Clone(g.cfg.Layers)}
	if p := g.Pending; p != nil {
		c.Pending = &pendingCounters{Begun: p.Begun, Pointer: p.Pointer, Pushed: p.Pushed,
			Used: usedCentres(p.graphPair)}
	}
	g.state = graphsState{counters: c}
	return &g.state.counters
}

// CheckCounters implements state.Checker. Graphs with other layers than those of the
// checkpoint, or that were not built when it was made, are left to the next step.
func (g *Graphs) CheckCounters() (err error) {
	s := &g.state
	s.restoring = true
	c := s.counters
	if s.build = c.Begun < 0 || !slices.Equal(c.Layers, g.cfg.Layers); s.build {
		return nil
	}
	if err := g.checkUsed(c.Used); err != nil {
		return err
	}
	p := c.Pending
	if p == nil {
		return nil
	}
	if err := g.checkUsed(p.Used); err != nil {
		return err
	}
	if p.Pointer < 0 || p.Pointer >= g.queue.size || p.Pushed < 0 {
		return fmt.Errorf("model: graph: a rebuild from row %d with %d entries since does not fit a queue of %d: choose another checkpoint", p.Pointer, p.Pushed, g.queue.size)
	}
	s.pending = &Pending{Begun: p.Begun, Pointer: p.Pointer, Pushed: p.Pushed}
	s.pending.graphPair, err = g.empty()
	return err
}

// checkUsed tests the number of centres in use of every layer.
func (g *Graphs) checkUsed(used [2][]int) error {
	for i, x := range g.list() {
		if len(used[i]) != len(x.Layers) {
			return fmt.Errorf("model: graph: %d layers with centres, want %d: choose another checkpoint",
				len(used[i]), len(x.Layers))
		}
		for j, l := range x.Layers {
			if n := used[i][j]; n < 1 || n > len(l.Parent) {
				return fmt.Errorf("model: graph: %d centres in use of %d: choose another checkpoint", n, len(l.Parent))
			}
		}
	}
	return nil
}

// Tensors implements state.Part.
func (g *Graphs) Tensors() []state.Tensor {
	pending := g.Pending
	if g.state.restoring {
		if g.state.build {
			return nil
		}
		pending = g.state.pending
	}
	list := graphTensors("", g.graphPair)
	if pending != nil {
		list = append(list, graphTensors("pending/", pending.graphPair)...)
	}
	return list
}

// Restored implements state.Restorer: edges and paths are made again, and paths then put
// back bit by bit, since they depend on the processor. The figures are those of the time
// when the checkpoint was made.
func (g *Graphs) Restored() error {
	s := g.state
	g.state = graphsState{}
	g.Reset()
	if s.build {
		return nil
	}
	g.relink(g.graphPair, s.counters.Used)
	if p := s.pending; p != nil {
		g.relink(p.graphPair, s.counters.Pending.Used)
		g.Pending = p
	}
	g.Begun = s.counters.Begun
	g.Describe()
	for i, v := range g.values {
		if f, ok := s.counters.Figures[v.Name]; ok {
			g.values[i].Value = f
		}
	}
	return nil
}

// Absent implements state.Optional: the next step with a full queue builds the graphs.
func (g *Graphs) Absent() error {
	g.state = graphsState{}
	g.Reset()
	return nil
}

// relink takes graphs whose tensors were read.
func (g *Graphs) relink(p graphPair, used [2][]int) {
	for k, x := range p.list() {
		for i, l := range x.Layers {
			l.Used = used[k][i]
		}
		paths := slices.Clone(x.Paths)
		x.Relink(g.engine)
		copy(x.Paths, paths)
	}
}

// graphTensors are the tensors of graphs over N entries: of each layer, top first, the
// centres with their parents, and of the bottom one the paths. A path may be infinite.
func graphTensors(prefix string, p graphPair) (list []state.Tensor) {
	for m, g := range p.list() {
		of := prefix + modalities[m] + "/"
		n, k := len(g.Owner), len(g.Layers[len(g.Layers)-1].Parent)
		list = append(list,
			state.Tensor{Name: of + "paths", Shape: []int{k, k}, Data: g.Paths, Infinite: true},
			state.Tensor{Name: of + "owner", Shape: []int{n}, Data: g.Owner},
			state.Tensor{Name: of + "reach", Shape: []int{n}, Data: g.Reach, Infinite: true})
		for i, l := range g.Layers {
			k := len(l.Parent)
			name := fmt.Sprintf("%slayer%d/", of, i)
			list = append(list,
				state.Tensor{Name: name + "centres", Shape: []int{k, len(l.Centres) / k}, Data: l.Centres,
					Infinite: true},
				state.Tensor{Name: name + "parent", Shape: []int{k}, Data: l.Parent})
		}
	}
	return list
}

// usedCentres are the centres in use of each layer of both graphs.
func usedCentres(p graphPair) (used [2][]int) {
	for i, g := range p.list() {
		for _, l := range g.Layers {
			used[i] = append(used[i], l.Used)
		}
	}
	return used
}
