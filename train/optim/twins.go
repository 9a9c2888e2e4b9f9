package optim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Twin is a run of parameters that have a moving average.
type Twin struct {
	Offset int       // of the first parameter, in the slab
	Values []float32 // the averages, one for each parameter
}

// piece is a piece of work of StepTwins: an update, a moving average, or both.
type piece struct {
	chunk
	update bool
	twin   []float32
}

// SetTwins names the moving averages that StepTwins moves along with the parameters.
// Runs must be in the order of their offsets and must not overlap. They may hold
// parameters that are in no segment, which never change.
func (o *AdamW) SetTwins(twins []Twin) error {
	end := 0
	cuts := make([]int, 0, 2*(len(o.work)+len(twins)))
	for _, t := range twins {
		if t.Offset < end || t.Offset+len(t.Values) > len(o.params) {
			return fmt.Errorf("optim: twins of [%d, %d) overlap their predecessors or leave the slab of %d elements",
				t.Offset, t.Offset+len(t.Values), len(o.params))
		}
		end = t.Offset + len(t.Values)
		for lo := t.Offset; lo < end; lo += chunkLen {
			cuts = append(cuts, lo)
		}
		cuts = append(cuts, end)
	}
	for _, w := range o.work {
		cuts = append(cuts, w.lo, w.hi)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	o.pieces = o.pieces[:0]
	work := o.work
	for i := 0; i+1 < len(cuts); i++ {
		p := piece{chunk: chunk{lo: cuts[i], hi: cuts[i+1]}}
		for len(work) > 0 && work[0].hi <= p.lo {
			work = work[1:]
		}
		for len(twins) > 0 && twins[0].Offset+len(twins[0].Values) <= p.lo {
			twins = twins[1:]
		}
		if len(work) > 0 && work[0].lo <= p.lo {
			p.update, p.decay, p.rate, p.pull = true, work[0].decay, work[0].rate, work[0].pull
		}
		if len(twins) > 0 && twins[0].Offset <= p.lo {
			t := twins[0]
			p.twin = t.Values[p.lo-t.Offset : p.hi-t.Offset]
		}
		if p.update || p.twin != nil {
			o.pieces = append(o.pieces, p)
		}
	}
	if o.cuda != nil {
		o.cuda.err = errors.Join(o.cuda.err, o.cuda.cut(o)) // without a table of these twins nothing goes on
		return o.cuda.err
	}
	return nil
}

// StepTwins is Step followed by twin = momentum*twin + (1-momentum)*parameter for all
// twins (Li et al. 2021, section 3.2), in one pass over memory and with the same bits
// as vector.EMA after Step. SetTwins must have been called.
func (o *AdamW) StepTwins(lr, scale, norm, momentum float64) {
	o.prepare(lr, scale, norm)
	o.twinWeight = float32(1 - momentum)
	if o.cuda != nil {
		o.cuda.step(o, true)
		return
	}
	o.engine.For(len(o.pieces), 1, o.twinBody)
}

// stepPieces is the work of one thread in StepTwins.
func (o *AdamW) stepPieces(_, lo, hi int) {
	for _, p := range o.pieces[lo:hi] {
		values := o.params[p.lo:p.hi]
		if !p.update {
			vector.EMA(p.twin, values, o.twinWeight)
			continue
		}
		s := o.stepOf(p.chunk)
		m, v, g := o.m[p.lo:p.hi], o.v[p.lo:p.hi], o.grads[p.lo:p.hi]
		switch {
		case p.twin == nil:
			vector.AdamW(values, m, v, g, s)
			p.pull.after(values, p.lo, s.LR)
		case p.pull != nil:
			vector.AdamW(values, m, v, g, s)
			p.pull.after(values, p.lo, s.LR)
			vector.EMA(p.twin, values, o.twinWeight)
		default:
			vector.AdamWEMA(values, m, v, g, p.twin, s, o.twinWeight)
		}
	}
}
