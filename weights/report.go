package weights

import (
	"fmt"
	"slices"
	"strings"
)

// Report says what of a model was read so far, and what does not fit. Its lists are in order.
type Report struct {
	Family     string
	Read       int      // parameters
	Resampled  []string // position tables of images that were brought to another grid
	Cut        []string // position tables of texts that were cut
	Unread     []string // parameters that nothing asked for
	Missing    []string // parameters that a model of the family has, and this one lacks
	Unneeded   []string // tensors without a parameter that are known, such as heads of classification
	Unexpected []string // tensors that are not known
	Notes      []string // what was assumed, or differs
}

// Report returns what was read so far.
func (m *Model) Report() Report {
	r := Report{Family: m.Family, Missing: slices.Clone(m.fit.missing), Unneeded: slices.Clone(m.fit.unneeded),
		Unexpected: slices.Clone(m.fit.unexpected), Notes: slices.Concat(m.Notes, m.TowerNotes)}
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, name := range m.Names() {
		h, ok := m.read[name]
		if !ok {
			r.Unread = append(r.Unread, name)
			continue
		}
		r.Read++
		switch h {
		case resampled:
			r.Resampled = append(r.Resampled, name)
		case cut:
			r.Cut = append(r.Cut, name)
		}
	}
	return r
}

// String is the report in some lines: a summary, then what needs a look.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d parameters read", r.Family, r.Read)
	for _, l := range []struct {
		what  string
		names []string
	}{{"resampled", r.Resampled}, {"cut", r.Cut}, {"not asked for", r.Unread}, {"missing", r.Missing},
		{"not needed", r.Unneeded}, {"not known", r.Unexpected}} {
		if len(l.names) > 0 {
			fmt.Fprintf(&b, "\n%d %s: %s", len(l.names), l.what, some(l.names))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s", note)
	}
	return b.String()
}
