package sentencepairs

import (
	"strconv"

	"github.com/geoalign/geoalign/data"
)

var (
	_ data.Listed = (*Set)(nil)
	_ data.Listed = (*Stream)(nil)
)

// Entries implements data.Listed.
func (s *Stream) Entries() data.Entries { return s.set.Entries() }

// Entries implements data.Listed: pairs have no names.
func (s *Set) Entries() data.Entries {
	return data.Entries{Len: len(s.Pairs), At: func(i int) data.Entry {
		p := s.Pairs[i]
		said := strconv.FormatFloat(p.Score, 'g', -1, 64)
		if !s.Task.Scored() {
			said = "class " + strconv.Itoa(int(p.Label))
		}
		return data.Entry{Rest: []string{p.A, p.B, said}}
	}}
}
