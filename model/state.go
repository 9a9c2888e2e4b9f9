package model

import "github.com/geoalign/geoalign/state"

// State returns what a checkpoint holds of the system besides its parameters: the queue
// and the graphs over it.
func (m *ALBEF) State() []state.Part { return queueState(m.queue, m.graphs) }

// State returns what a checkpoint holds of the system besides its parameters: the queue
// and the graph over it.
func (v *Views) State() []state.Part { return queueState(v.queue, v.graphs) }

// queueState lists a queue and its graphs where there are any.
func queueState(q *Queue, g *Graphs) (parts []state.Part) {
	if q != nil {
		parts = append(parts, q)
	}
	if g != nil {
		parts = append(parts, g)
	}
	return parts
}
