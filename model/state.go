package model

import "github.com/geoalign/geoalign/state"

// State returns what a checkpoint holds of the system besides its parameters: the queue
// and the graphs over it, and which teacher of scores it has.
func (p *Pairs) State() (parts []state.Part) {
	if p.queue != nil {
		parts = append(parts, p.queue)
	}
	if p.graphs != nil {
		parts = append(parts, p.graphs)
	}
	if p.tutor != nil {
		parts = append(parts, p.tutor)
	}
	return parts
}
