package source

import "time"

// patience is how long an opening goes on before anybody is told.
var patience = time.Second

// redraw is the least time between two tellings, but for the last.
const redraw = 100 * time.Millisecond

// opening returns what tells o.Progress of a phase that has begun now, where it takes long; nil if nobody wants to
// know.
func (o Options) opening(phase string) func(done, of int) {
	if o.Progress == nil {
		return nil
	}
	next, told := time.Now().Add(patience), false
	return func(done, of int) {
		now := time.Now()
		if now.Before(next) && !(told && done == of) {
			return
		}
		next, told = now.Add(redraw), true
		o.Progress(phase, done, of)
	}
}
