package gallery

import (
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/geoalign/geoalign/search"
)

// keptSelections is how many selections a gallery remembers: a server is asked with the same filters again and again.
const keptSelections = 16

// selection is the rows that a filter chooses among the first of a gallery, deleted ones too.
type selection struct {
	mu   sync.Mutex
	rows []int32
	upto int // rows that were looked at
}

// Select returns the rows of a side that a filter chooses, in their order. It reads the names of all rows, once for a
// key of filters.
func (g *Gallery) Select(side string, f *Filter) ([]int32, error) {
	key := side + " " + f.key
	g.mu.Lock()
	s := g.selected[key]
	if s == nil {
		if g.selected == nil || len(g.selected) >= keptSelections {
			g.selected = map[string]*selection{}
		}
		s = &selection{rows: []int32{}}
		g.selected[key] = s
	}
	g.mu.Unlock()
	l := g.liveOf(side)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.extend(g, side, f, l); err != nil {
		return nil, err
	}
	rows := s.rows[:len(s.rows):len(s.rows)]
	if l == nil {
		return rows, nil
	}
	return l.only(rows[:sort.Search(len(rows), func(i int) bool { return int(rows[i]) >= l.rows })]), nil
}

// extend looks at the rows that were not looked at.
func (s *selection) extend(g *Gallery, side string, f *Filter, l *live) error {
	take := func(i int, line []byte) error {
		fields, err := fieldsOf(i, line)
		if err == nil && f.Match(fields) {
			s.rows = append(s.rows, int32(i))
		}
		return err
	}
	if base := g.baseRows(side); s.upto < base {
		of, err := g.columns(side, f.keys)
		if err != nil {
			return err
		}
		s.rows = s.rows[:0]
		fields := map[string]any{}
		for i := range base {
			clear(fields)
			for k, key := range f.keys {
				if v := of[k][i]; !isAbsent(v) {
					fields[key] = v
				}
			}
			if f.Match(fields) {
				s.rows = append(s.rows, int32(i))
			}
		}
		s.upto = base
	}
	for ; l != nil && s.upto < l.rows; s.upto++ {
		if err := take(s.upto, l.lines[s.upto-l.base]); err != nil {
			return err
		}
	}
	return nil
}

// absent stands for the value of a row that lacks a key.
type absent struct{}

// keptValues is how many values of columns are remembered, so that the next filter of a key reads no names.
const keptValues = 1 << 24

// columns returns what the rows of the files of a side have under keys (keys, N).
func (g *Gallery) columns(side string, keys []string) ([][]any, error) {
	g.reading.Lock()
	defer g.reading.Unlock()
	n := g.baseRows(side)
	out, missing := make([][]any, len(keys)), []string{}
	var fill [][]any // of the missing keys
	for k, key := range keys {
		if out[k] = g.column[side+" "+key]; out[k] == nil {
			out[k] = slices.Repeat([]any{absent{}}, n)
			missing, fill = append(missing, key), append(fill, out[k])
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	if names := g.names[side]; names != nil {
		scanners := make([]*scanner, workers())
		if err := names.each(func(worker, i int, line []byte) error {
			if scanners[worker] == nil {
				scanners[worker] = newScanner(missing)
			}
			return scanners[worker].scan(i, line, func(k int, v any) { fill[k][i] = v })
		}); err != nil {
			return nil, err
		}
	} else { // a file of features, whose rows have numbers alone
		s := newScanner(missing)
		for i := range n {
			if err := s.scan(i, []byte("{}"), func(k int, v any) { fill[k][i] = v }); err != nil {
				return nil, err
			}
		}
	}
	if g.column == nil || (len(g.column)+len(missing))*n > keptValues {
		g.column = map[string][]any{}
	}
	for k, key := range missing {
		if (len(g.column)+1)*n <= keptValues {
			g.column[side+" "+key] = fill[k]
		}
	}
	return out, nil
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
	id, _ := own["id"].(string)
	name, _ := own["name"].(string)
	payload, _ := own["payload"].(map[string]any)
	delete(own, "payload")
	for k, v := range payload {
		if _, there := own[k]; !there {
			own[k] = v
		}
	}
	if _, there := own["id"]; !there {
		own["id"] = idOf(i, id, name, nil)
	}
	return own, nil
}

// Fields returns some of what a gallery says of a row: the named keys, with dots as in a filter, of the item and its
// payload. What the row lacks is left out.
func (g *Gallery) Fields(side string, i int, keys []string) (map[string]any, error) {
	line, err := g.line(side, i)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	fields, err := fieldsOf(i, line)
	for _, k := range keys {
		if v, there := lookup(fields, k); there {
			out[k] = v
		}
	}
	return out, err
}

// rowsPool is a pool that reads rows that follow each other at once.
type rowsPool interface {
	search.Pool
	ReadRows(first int, dst []float32) error
}

// subset is some rows of a pool.
type subset struct {
	rowsPool
	rows []int32
}

// Rows returns the number of rows.
func (s subset) Rows() int { return len(s.rows) }

// Row reads row i of the subset.
func (s subset) Row(i int, dst []float32) error { return s.rowsPool.Row(int(s.rows[i]), dst) }

// ReadRows reads rows from first on, those that lie beside each other at once.
func (s subset) ReadRows(first int, dst []float32) error {
	for w := s.Width(); len(dst) > 0; {
		n := 1
		for n < len(dst)/w && s.rows[first+n] == s.rows[first+n-1]+1 {
			n++
		}
		if err := s.rowsPool.ReadRows(int(s.rows[first]), dst[:n*w]); err != nil {
			return err
		}
		first, dst = first+n, dst[n*w:]
	}
	return nil
}

// Above counts the scores, the best first, that are at least least.
func Above(scores []float32, least float64) int {
	return sort.Search(len(scores), func(i int) bool { return float64(scores[i]) < least })
}

func isAbsent(v any) bool { _, is := v.(absent); return is }
