package mpi

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Before an exchange each rank tells the others what it is about to do. Ranks that do not run the
// same program get an error so, where they would wait for ever or take one's bytes for another's.
// The lengths that are gathered and the answers to All travel the same way.

// noteBytes is the length of a note: the kind, whether it is ok, the number of the exchange and the
// length. No note is all zeros, so one that has not come can be told.
const noteBytes = 24

// note is what a rank tells.
type note struct {
	kind             kind
	ok               uint32
	exchange, length uint64
}

func (n note) put(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(n.kind))
	binary.LittleEndian.PutUint32(b[4:], n.ok)
	binary.LittleEndian.PutUint64(b[8:], n.exchange)
	binary.LittleEndian.PutUint64(b[16:], n.length)
}

// noteOf returns the note of a rank.
func (t *thread) noteOf(rank int) note {
	b := t.notes[rank*noteBytes:][:noteBytes]
	return note{kind(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:]),
		binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
}

// agree exchanges notes. It returns whether all are ok.
func (t *thread) agree(c call, length int) (bool, error) {
	t.exchanges++
	own := note{kind: c.kind, exchange: t.exchanges, length: uint64(length)}
	if c.ok {
		own.ok = 1
	}
	clear(t.notes)
	own.put(t.notes[t.rank*noteBytes:])
	t.asking = true
	err := t.api.allgather(t.notes, noteBytes, &t.asked)
	if err == nil {
		err = t.await(&t.asked)
	}
	t.asking = false
	if err != nil {
		return false, err
	}
	ok := true
	for r := range t.ranks {
		n := t.noteOf(r)
		ok = ok && n.ok == 1
		same := n.kind == own.kind && n.exchange == own.exchange
		if c.kind != gather && c.kind != gatherBytes { // whose lengths may differ
			same = same && n.length == own.length
		}
		if !same {
			return false, fmt.Errorf("mpi: rank %d is in %s (exchange %d), and rank %d in %s (exchange %d): "+
				"all ranks must run the same program with the same configuration and data",
				t.rank, own.kind.of(length), own.exchange, r, n.kind.of(int(n.length)), n.exchange)
		}
	}
	return ok, nil
}

// silent names the ranks of which no note has come, as far as that can be told: some libraries
// pass notes on through other ranks.
func (t *thread) silent() string {
	if !t.asking {
		return ""
	}
	var out []string
	for r := range t.ranks {
		if t.noteOf(r).kind == 0 {
			out = append(out, fmt.Sprint(r))
		}
	}
	if len(out) == 0 {
		return ""
	}
	const shown = 8
	if len(out) > shown {
		out = append(out[:shown], fmt.Sprintf("and %d more", len(out)-shown))
	}
	return "; nothing has come of rank " + strings.Join(out, ", ")
}
