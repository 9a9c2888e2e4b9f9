package gallery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sort"
	"strconv"
	"sync"
)

// ErrNoRow is wrapped by the error of an id that no row has.
var ErrNoRow = errors.New("gallery: no row has this id")

// idOf returns the id of row i: that of its line, else a text under "id" in its payload, else its name, else its
// number.
func idOf(i int, id, name string, payload json.RawMessage) string {
	if id == "" && bytes.Contains(payload, []byte(`"id"`)) {
		var of map[string]json.RawMessage
		if json.Unmarshal(payload, &of) == nil { // or it is no object
			_ = json.Unmarshal(of["id"], &id) // or it is no text
		}
	}
	return cmp.Or(id, name, strconv.Itoa(i))
}

// lineID is idOf of a line.
func lineID(i int, line []byte) (string, error) {
	var v struct {
		ID, Name string
		Payload  json.RawMessage
	}
	err := json.Unmarshal(line, &v)
	return idOf(i, v.ID, v.Name, v.Payload), err
}

// ids finds rows by their ids. Memory holds 12 bytes of a row.
type ids struct {
	hashes []uint64 // rising
	rows   []int32
}

var idSeed = maphash.MakeSeed()

// ids returns those of the files of a side, which are read once.
func (g *Gallery) ids(side string) (*ids, error) {
	g.mu.Lock()
	read := g.found[side]
	if read == nil {
		read = sync.OnceValues(func() (*ids, error) { return g.readIDs(side) })
		if g.found == nil {
			g.found = map[string]func() (*ids, error){}
		}
		g.found[side] = read
	}
	g.mu.Unlock()
	return read()
}

func (g *Gallery) readIDs(side string) (*ids, error) {
	n := g.baseRows(side)
	x := &ids{hashes: make([]uint64, n), rows: make([]int32, n)}
	of := make([]uint64, n) // by row
	take := func(_, i int, line []byte) error {
		id, err := lineID(i, line)
		of[i] = maphash.String(idSeed, id)
		return err
	}
	if l := g.names[side]; l != nil {
		if err := l.each(take); err != nil {
			return nil, err
		}
	} else {
		for i := range n {
			of[i] = maphash.String(idSeed, strconv.Itoa(i))
		}
	}
	for i := range x.rows {
		x.rows[i] = int32(i)
	}
	slices.SortFunc(x.rows, func(a, b int32) int { return cmp.Or(cmp.Compare(of[a], of[b]), int(a-b)) })
	for k, row := range x.rows {
		x.hashes[k] = of[row]
	}
	return x, nil
}

// idAt is the id of row i.
func (g *Gallery) idAt(side string, i int) (string, error) {
	line, err := g.line(side, i)
	if err != nil {
		return "", err
	}
	return lineID(i, line)
}

// base returns the first row of the files of a side that has an id, deleted or not, -1 where none has.
func (g *Gallery) base(side, id string) (int, error) {
	x, err := g.ids(side)
	if err != nil {
		return -1, err
	}
	h := maphash.String(idSeed, id)
	for k, _ := slices.BinarySearch(x.hashes, h); k < len(x.hashes) && x.hashes[k] == h; k++ {
		if is, err := g.idAt(side, int(x.rows[k])); err != nil || is == id {
			return int(x.rows[k]), err
		}
	}
	return -1, nil
}

// ByID returns the row of a side that has an id now. It wraps ErrNoRow where none has.
func (g *Gallery) ByID(side, id string) (int, error) {
	g.mu.Lock()
	l := g.liveOf(side)
	row, there := g.put[id]
	g.mu.Unlock()
	if l != nil && there && !l.isDead(int(row)) {
		return int(row), nil
	}
	first, err := g.base(side, id)
	if err == nil && (first < 0 || l.isDead(first)) {
		err = fmt.Errorf("%w: %.200q", ErrNoRow, id)
	}
	return first, err
}

// unique refuses rows of the files of a side that have the same id.
func (g *Gallery) unique(side string) error {
	x, err := g.ids(side)
	if err != nil {
		return err
	}
	for k := 0; k < len(x.hashes); {
		end := k + sort.Search(len(x.hashes)-k, func(i int) bool { return x.hashes[k+i] > x.hashes[k] })
		seen := map[string]int32{}
		for ; k < end; k++ {
			if end-k == 1 && len(seen) == 0 {
				continue
			}
			id, err := g.idAt(side, int(x.rows[k]))
			if err != nil {
				return err
			}
			if first, twice := seen[id]; twice {
				return fmt.Errorf("gallery: rows %d and %d of %s both have the id %.200q: "+
					"embed them with an \"id\" of their own in --payload", first, x.rows[k], g.Path, id)
			}
			seen[id] = x.rows[k]
		}
	}
	return nil
}
