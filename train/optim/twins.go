package optim

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel"
)

// Twin is a run of parameters that have a moving average.
type Twin struct {
	Offset int       // of the first parameter, in the slab
	Values []float32 // the averages, one for each parameter
}

// Rounded is a run of parameters, or of twins of parameters, that have a copy in
// bfloat16 (the upper halves of rounded values, see kernel.ToBF16).
type Rounded struct {
	Offset int // of the first parameter, in the slab
	Values []uint16
}

// piece is a piece of work that is alike throughout: an update, a moving average, or
// both, with or without copies.
type piece struct {
	chunk
	update             bool
	twin               []float32
	rounded, roundTwin []uint16
}

// SetTwins names the moving averages that StepTwins moves along with the parameters.
// Runs must be in the order of their offsets and must not overlap. They may hold
// parameters that are in no segment, which never change.
func (o *AdamW) SetTwins(twins []Twin) error {
	if err := o.checkRuns("twins", len(twins), func(i int) (int, int) { return twins[i].Offset, len(twins[i].Values) }); err != nil {
		return err
	}
	o.twins = slices.Clone(twins)
	o.cut()
	return nil
}

// SetRounded names copies in bfloat16 that the optimiser keeps: of parameters, which
// Step and StepTwins round anew after each update, and of twins, which StepTwins does,
// while the values are in a cache. Runs must be in the order of their offsets and must
// not overlap. What is in no segment, or is no twin, is not rounded; nor is anything
// before the first update, or when somebody else changes values.
func (o *AdamW) SetRounded(params, twins []Rounded) error {
	for _, r := range []struct {
		name string
		runs []Rounded
	}{{"copies of parameters", params}, {"copies of twins", twins}} {
		if err := o.checkRuns(r.name, len(r.runs), func(i int) (int, int) { return r.runs[i].Offset, len(r.runs[i].Values) }); err != nil {
			return err
		}
	}
	o.rounded, o.roundTwins = slices.Clone(params), slices.Clone(twins)
	o.cut()
	return nil
}

// checkRuns returns an error unless n runs, given by offset and length, are in order and
// in the slab.
func (o *AdamW) checkRuns(name string, n int, run func(i int) (offset, size int)) error {
	end := 0
	for i := range n {
		offset, size := run(i)
		if offset < end || offset+size > len(o.params) {
			return fmt.Errorf("optim: %s of [%d, %d) overlap their predecessors or leave the slab of %d elements", name, offset, offset+size, len(o.params))
		}
		end = offset + size
	}
	return nil
}

// cut makes the pieces: every run begins and ends where a piece does.
func (o *AdamW) cut() {
	var cuts []int
	add := func(offset, size int) {
		for lo := offset; lo < offset+size; lo += chunkLen {
			cuts = append(cuts, lo)
		}
		cuts = append(cuts, offset+size)
	}
	for _, w := range o.work {
		add(w.lo, w.hi-w.lo)
	}
	for _, t := range o.twins {
		add(t.Offset, len(t.Values))
	}
	for _, r := range append(slices.Clone(o.rounded), o.roundTwins...) {
		add(r.Offset, len(r.Values))
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	work, twins, rounded, roundTwins := o.work, o.twins, o.rounded, o.roundTwins
	o.pieces = o.pieces[:0]
	for i := 0; i+1 < len(cuts); i++ {
		p := piece{chunk: chunk{lo: cuts[i], hi: cuts[i+1]}}
		for len(work) > 0 && work[0].hi <= p.lo {
			work = work[1:]
		}
		for len(twins) > 0 && twins[0].Offset+len(twins[0].Values) <= p.lo {
			twins = twins[1:]
		}
		if len(work) > 0 && work[0].lo <= p.lo {
			p.update, p.decay = true, work[0].decay
		}
		if len(twins) > 0 && twins[0].Offset <= p.lo {
			at := twins[0].Offset
			p.twin = twins[0].Values[p.lo-at : p.hi-at]
		}
		p.rounded, rounded = copyOf(rounded, p.chunk)
		p.roundTwin, roundTwins = copyOf(roundTwins, p.chunk)
		if p.update || p.twin != nil {
			o.pieces = append(o.pieces, p)
		}
	}
}

// copyOf returns the part of a run that belongs to c, nil if there is none, and the runs
// that do not end before it.
func copyOf(runs []Rounded, c chunk) ([]uint16, []Rounded) {
	for len(runs) > 0 && runs[0].Offset+len(runs[0].Values) <= c.lo {
		runs = runs[1:]
	}
	if len(runs) == 0 || runs[0].Offset > c.lo {
		return nil, runs
	}
	at := runs[0].Offset
	return runs[0].Values[c.lo-at : c.hi-at], runs
}

// StepTwins is Step followed by twin = momentum*twin + (1-momentum)*parameter for all
// twins (Li et al. 2021, section 3.2), in one pass over memory and with the same bits
// as kernel.EMA after Step. SetTwins must have been called.
func (o *AdamW) StepTwins(lr, scale, norm, momentum float64) {
	o.prepare(lr, scale, norm)
	o.twinWeight = float32(1 - momentum)
	o.engine.For(len(o.pieces), 1, o.twinBody)
}

// stepPieces is the work of one thread in StepTwins.
func (o *AdamW) stepPieces(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		p := &o.pieces[i]
		values := o.params[p.lo:p.hi]
		switch {
		case p.update && p.twin != nil:
			kernel.AdamWEMA(values, o.m[p.lo:p.hi], o.v[p.lo:p.hi], o.grads[p.lo:p.hi], p.twin, o.scalars(p.decay), o.twinWeight)
		case p.update:
			o.update(p.chunk)
		default:
			kernel.EMA(p.twin, values, o.twinWeight)
		}
		p.round(values)
		if p.twin != nil && p.roundTwin != nil {
			kernel.ToBF16(p.roundTwin, p.twin)
		}
	}
}

// updatePieces is the work of one thread in Step where parameters have copies.
func (o *AdamW) updatePieces(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		if p := &o.pieces[i]; p.update {
			o.update(p.chunk)
			p.round(o.params[p.lo:p.hi])
		}
	}
}

// round rounds the parameters of a piece that has been updated.
func (p *piece) round(values []float32) {
	if p.update && p.rounded != nil {
		kernel.ToBF16(p.rounded, values)
	}
}
