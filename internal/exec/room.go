package exec

import (
	"errors"

	"github.com/geoalign/geoalign/internal/memory"
)

// Room is memory that several machines work in, on the host or on one device, of which one runs at a time: the results
// of one are gone when another runs. It grows with the machines that are compiled, and those from before keep the
// memory that they have.
type Room struct {
	arena, scratch []float32
	lent           []Memory // of a device, the newest last
	words          int      // of the newest
	last           *Machine // on a device: the one that ran last
}

// Sharer is Memory that several machines may work in.
type Sharer interface {
	Memory
	// Share returns the same memory, whose Free leaves it to the others.
	Share() Memory
}

// Bytes returns what the room holds on the host.
func (r *Room) Bytes() int64 { return 4 * int64(len(r.arena)+len(r.scratch)) }

// on returns words of a device, which other machines use too; false: memory there cannot be shared.
func (r *Room) on(d Device, words int) (Memory, bool, error) {
	if r.lent == nil || words > r.words {
		n := max(words, 3*r.words/2)
		m, err := d.Alloc(n)
		if err != nil && n > words {
			n = words
			m, err = d.Alloc(n)
		}
		if err != nil {
			return nil, false, err
		}
		if _, ok := m.(Sharer); !ok {
			return m, false, nil
		}
		r.lent, r.words = append(r.lent, m), n
	}
	return r.lent[len(r.lent)-1].(Sharer).Share(), true, nil
}

// Close gives the memory back. Its machines are closed before.
func (r *Room) Close() error {
	var errs []error
	for _, m := range r.lent {
		errs = append(errs, m.Free())
	}
	*r = Room{}
	return errors.Join(errs...)
}

// take returns n floats, which other machines use too.
func (r *Room) take(of *[]float32, n int) []float32 {
	if len(*of) < n {
		*of = memory.Floats(max(n, 5*len(*of)/4))
	}
	return (*of)[:n:n]
}
