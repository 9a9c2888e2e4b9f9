package gallery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
)

// keptSelections is how many selections a gallery remembers: a server is asked with the same filters again and again.
const keptSelections = 16

// Select returns the rows of a side that a filter chooses, in their order. It reads the names of all rows, once for a
// filter.
func (g *Gallery) Select(side string, f *Filter) ([]int32, error) {
	key := side + " " + f.key
	g.mu.Lock()
	rows, known := g.selected[key]
	g.mu.Unlock()
	if known {
		return rows, nil
	}
	rows = []int32{}
	take := func(i int, line []byte) error {
		fields, err := fieldsOf(i, line)
		if err == nil && f.Match(fields) {
			rows = append(rows, int32(i))
		}
		return err
	}
	if l := g.names[side]; l != nil {
		if err := l.each(take); err != nil {
			return nil, err
		}
	} else { // a file of features, whose rows have numbers alone
		for i := range g.Rows(side) {
			if err := take(i, []byte("{}")); err != nil {
				return nil, err
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.selected == nil || len(g.selected) >= keptSelections {
		g.selected = map[string][]int32{}
	}
	g.selected[key] = rows
	return rows, nil
}

// fieldsOf is what a line says of row i: the keys of its payload beside its own, which win.
func fieldsOf(i int, line []byte) (map[string]any, error) {
	var own map[string]any
	if err := json.Unmarshal(line, &own); err != nil {
		return nil, err
	}
	if own == nil {
		return nil, errors.New("it is not an object")
	}
	own["row"] = float64(i)
	payload, _ := own["payload"].(map[string]any)
	delete(own, "payload")
	for k, v := range payload {
		if _, there := own[k]; !there {
			own[k] = v
		}
	}
	return own, nil
}

// Fields returns some of what a gallery says of a row: the named keys, with dots as in a filter, of the item and its
// payload. What the row lacks is left out.
func (g *Gallery) Fields(side string, i int, keys []string) (map[string]any, error) {
	out, line := map[string]any{}, json.RawMessage("{}")
	if l := g.names[side]; l != nil {
		if err := l.read(i, &line); err != nil {
			return nil, err
		}
	}
	fields, err := fieldsOf(i, line)
	for _, k := range keys {
		if v, there := lookup(fields, k); there {
			out[k] = v
		}
	}
	return out, err
}

// subset is some rows of a table. It is a search.Pool.
type subset struct {
	*table
	rows []int32
}

// Rows returns the number of rows.
func (s subset) Rows() int { return len(s.rows) }

// Row reads row i of the subset.
func (s subset) Row(i int, dst []float32) error { return s.table.Row(int(s.rows[i]), dst) }

// ReadRows reads rows from first on, those that lie beside each other at once.
func (s subset) ReadRows(first int, dst []float32) error {
	for w := s.Width(); len(dst) > 0; {
		n := 1
		for n < len(dst)/w && s.rows[first+n] == s.rows[first+n-1]+1 {
			n++
		}
		if err := s.table.ReadRows(int(s.rows[first]), dst[:n*w]); err != nil {
			return err
		}
		first, dst = first+n, dst[n*w:]
	}
	return nil
}

// each hands over all lines in their order.
func (l *lines) each(f func(i int, line []byte) error) error {
	i := 0
	for _, p := range l.parts {
		b := make([]byte, p.size)
		if _, err := p.ReadAt(b, 0); err != nil {
			return fmt.Errorf("gallery: %s: %w", p.Name(), err)
		}
		for line := range bytes.Lines(b) {
			if err := f(i, line); err != nil {
				return fmt.Errorf("gallery: %s: line %d: %w", p.Name(), i+1, err)
			}
			i++
		}
	}
	return nil
}

// Above counts the scores, the best first, that are at least least.
func Above(scores []float32, least float64) int {
	return sort.Search(len(scores), func(i int) bool { return float64(scores[i]) < least })
}
