package gallery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// mergeRows is the least number of changes that are worth a merge.
const mergeRows = 8192

// Due says whether searches and memory would gain by a merge: an eighth of the rows are changes.
func (w *Writer) Due() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.g.liveOf(w.side)
	return l != nil && !w.merging && w.broken == nil && l.alive() > 0 &&
		l.rows-l.base+l.goneOld >= max(mergeRows, l.base/8)
}

// Merge writes the rows to new files, without those that are dead, and empties the log. Changes go on meanwhile, and
// searches of the gallery of before do until it is closed. Prepare gets the new gallery before it is in force, as to
// build its index: from then on it is the caller's to close, also where Merge fails. Swap is called when it is in
// force: Gallery returns it, and the one of before is to be closed. Where there is nothing to merge, or another merge
// goes on, neither is called.
func (w *Writer) Merge(ctx context.Context, prepare func(next *Gallery) error, swap func(next *Gallery)) (err error) {
	w.mu.Lock()
	g, l := w.g, w.g.liveOf(w.side)
	if l == nil || w.merging || w.broken != nil || l.alive() == 0 || l.changes == 0 {
		defer w.mu.Unlock()
		return w.broken
	}
	w.merging = true
	m := *w.m
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.merging = false
		w.mu.Unlock()
	}()
	m.Generation++
	if m.Generation > maxGeneration {
		return fmt.Errorf("gallery: %s was rewritten %d times: embed it again to another folder", w.path, maxGeneration)
	}
	numbers, err := w.rewrite(ctx, g, l, &m)
	if err != nil {
		return err
	}
	next := newGallery(w.path)
	next.generation = m.Generation
	if err := next.openShards(&m); err != nil {
		return errors.Join(err, next.Close())
	}
	next.changed = w.side
	if err := next.ready(); err != nil {
		return err
	}
	if _, err := next.ids(w.side); err != nil { // which would keep changes waiting
		return errors.Join(err, next.Close())
	}
	if err := prepare(next); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	since := w.since(l, numbers)
	log, end, err := w.newLog(m.Generation, since)
	if err == nil {
		if err = w.commit(&m); err != nil {
			err = errors.Join(err, log.Close())
		}
	}
	if err != nil {
		return err
	}
	if since != nil {
		next.apply(since)
	}
	old := w.log
	w.g, w.m, w.log, w.end = next, &m, log, end
	swap(next)
	w.sweep()
	return old.Close()
}

// rewrite writes the living rows to shards, which it sets in m. It returns the new number of each row, -1 of the dead.
func (w *Writer) rewrite(ctx context.Context, g *Gallery, l *live, m *Manifest) (numbers []int32, err error) {
	numbers = make([]int32, l.rows)
	m.Shards, m.Rows = nil, 0
	tensors, width := g.tensors(), g.tables[w.side].width
	each := m.ShardRows
	if each < 1 {
		each = 100_000
	}
	var rows []int32 // of the shard, old numbers
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var list []safetensors.Tensor
		for _, name := range tensors {
			pool := subset{l.pool(g.tables[name], name), rows}
			list = append(list, safetensors.Tensor{Name: name, Shape: []int{len(rows), width}, Data: safetensors.Lazy{
				Len: len(rows) * width, Fill: func(dst []float32) error { return pool.ReadRows(0, dst) }}})
		}
		var bad error
		s, err := WriteShard(w.path, fmt.Sprintf("items-%05d-%05d", m.Generation, len(m.Shards)), list, m.Meta, len(rows),
			func(i int) any {
				line, err := g.identified(w.side, int(rows[i]))
				if err != nil {
					bad = err
				}
				return line
			})
		if err = errors.Join(bad, err); err != nil {
			return err
		}
		m.Shards, m.Rows, rows = append(m.Shards, s), m.Rows+len(rows), rows[:0]
		return w.lock.Lost()
	}
	for row := range int32(l.rows) {
		numbers[row] = -1
		if l.isDead(int(row)) {
			continue
		}
		numbers[row] = int32(m.Rows + len(rows))
		if rows = append(rows, row); len(rows) == each {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return numbers, flush()
}

// identified is the line of a row with its id, which its number would change in new files.
func (g *Gallery) identified(side string, row int) (json.RawMessage, error) {
	line, err := g.line(side, row)
	if err != nil {
		return nil, err
	}
	var of map[string]json.RawMessage
	if err := json.Unmarshal(line, &of); err != nil {
		return nil, err
	}
	delete(of, "row")
	if of["id"] == nil {
		id, err := lineID(row, line)
		if err != nil {
			return nil, err
		}
		if of["id"], err = json.Marshal(id); err != nil {
			return nil, err
		}
	}
	return json.Marshal(of)
}

// since is what has changed after l, by the numbers of the new files; nil: nothing.
func (w *Writer) since(l *live, numbers []int32) *change {
	now := w.g.liveOf(w.side)
	if now.changes == l.changes {
		return nil
	}
	c := &change{tensors: map[string][]float32{}}
	for row, number := range numbers {
		if number >= 0 && now.isDead(row) {
			c.Dead = append(c.Dead, number)
		}
	}
	width := w.g.tables[w.side].width
	for row := l.rows; row < now.rows; row++ {
		if now.isDead(row) {
			continue
		}
		at := row - now.base
		c.Lines = append(c.Lines, now.lines[at])
		id, _ := lineID(row, now.lines[at]) // which was read before
		c.ids = append(c.ids, id)
		for _, name := range w.g.tensors() {
			c.tensors[name] = append(c.tensors[name], now.x[name][at*width:(at+1)*width]...)
		}
	}
	return c
}

// ownFile are the names of files that a Writer makes, and of indices.
var ownFile = regexp.MustCompile(`^(items-\d{5}-\d{5}\.(safetensors|jsonl)|changes-\d{5}\.log|gallery-\d{5}\..*)$`)

// sweep removes files of other generations, and once there was a merge the shards of before the first. Who reads them
// has them open.
func (w *Writer) sweep() {
	files.DropTemporaries(w.path)
	used := map[string]bool{logFile(w.m.Generation): true}
	for _, s := range w.m.Shards {
		used[s.Features], used[s.Names] = true, true
	}
	index := filepath.Base(indexBase(w.path, w.m.Generation)) + "."
	list, _ := os.ReadDir(w.path)
	for _, e := range list {
		name := e.Name()
		old := ownFile.MatchString(name) || w.m.Generation > 1 && shardFile.MatchString(name)
		if len(name) > len(index) && name[:len(index)] == index || used[name] || !old {
			continue
		}
		_ = os.Remove(filepath.Join(w.path, name)) // else the next writer does
	}
}

// shardFile are the names of files that embed makes, and of their indices.
var shardFile = regexp.MustCompile(`^((images|texts|rows)-\d{5,9}\.(safetensors|jsonl)|gallery\..*)$`)
