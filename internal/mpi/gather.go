package mpi

import "slices"

// gather appends what all ranks give to the slice of c that is not nil, or to new ones. The notes
// have their lengths.
func (t *thread) gather(c *call, a *answer) error {
	longest, total := 0, 0
	for k := range t.ranks {
		n := int(t.noteOf(k).length)
		longest, total = max(longest, n), total+n
	}
	var into []byte
	switch {
	case c.floats != nil:
		n := len(c.floats)
		a.floats = slices.Grow(c.floats, total/4)[:n+total/4]
		into = bytesOf(a.floats[n:])
	case c.ints != nil:
		n := len(c.ints)
		a.ints = slices.Grow(c.ints, total/4)[:n+total/4]
		into = bytesOf(a.ints[n:])
	default:
		into = make([]byte, total)
	}
	for lo := 0; lo < longest; lo += t.share {
		if err := t.gatherRound(into, c.give, lo); err != nil {
			return err
		}
	}
	if c.kind == gatherBytes {
		for k := range t.ranks {
			n := int(t.noteOf(k).length)
			a.bytes = append(a.bytes, into[:n:n])
			into = into[n:]
		}
	}
	return nil
}

// gatherRound gathers bytes lo to lo + share of what each rank gives.
func (t *thread) gatherRound(into, give []byte, lo int) error {
	r := &t.rounds[0]
	for k := range t.ranks {
		n := int(t.noteOf(k).length)
		r.of.set(k, k*t.share, min(max(n-lo, 0), t.share))
	}
	copy(r.all[t.rank*t.share:][:t.share], give[min(lo, len(give)):])
	if err := t.api.allgatherv(r.all, r.of.counts, r.of.places, &r.spread); err != nil {
		return err
	}
	if err := t.await(&r.spread); err != nil {
		return err
	}
	for k := range t.ranks {
		if n := int(r.of.counts[k]); n > 0 {
			copy(into[lo:], r.all[k*t.share:][:n])
		}
		into = into[t.noteOf(k).length:]
	}
	return nil
}
