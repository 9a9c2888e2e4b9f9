package features

import (
	"strconv"

	"github.com/geoalign/geoalign/data"
)

var (
	_ data.Listed = (*Stream)(nil)
	_ data.Listed = (*Set)(nil)
	_ data.Listed = (*Pairs)(nil)
)

// Entries implements data.Listed.
func (s *Stream) Entries() data.Entries { return entries(s.pairs) }

// Entries implements data.Listed: those of the training split.
func (p *Pairs) Entries() data.Entries { return entries(p.splits["train"]) }

// Entries implements data.Listed: those of the split, whatever part of it is evaluated.
func (s *Set) Entries() data.Entries { return entries(s.all) }

// entries say which rows are pairs. What rows hold is the identity of their files.
func entries(list []Pair) data.Entries {
	return data.Entries{Len: len(list), At: func(i int) data.Entry { return entryOf(list[i]) }}
}

func entryOf(q Pair) data.Entry {
	return data.Entry{Name: "row " + strconv.Itoa(int(q.Image)) + " with " + strconv.Itoa(int(q.Text))}
}
