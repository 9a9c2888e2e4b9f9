package gallery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// Put is a row that takes the place of that with the same id, or is new.
type Put struct {
	ID      string
	Caption string          // of a text
	Payload json.RawMessage // any JSON; empty: none
	// features (C) by which the row is compared, and where the score of the model changes images before it compares
	// them with texts, Own (C), by which images are compared with each other
	Features, Own []float32
}

// ItemError says why a row cannot be put.
type ItemError struct {
	Item int // of those of the change, from 0
	Err  error
}

// Error names the item.
func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Item, e.Err) }

// Unwrap is for errors.Is.
func (e *ItemError) Unwrap() error { return e.Err }

// maxID is the most bytes of an id.
const maxID = 4096

// PhotosRows is the most rows of a shard of a gallery that photos keeps, by which it is known.
const PhotosRows = 1 << 16

// Writer changes the rows of a gallery in shards. A folder has one at a time. Many goroutines may use it at once.
//
// A change is in the log of the folder and on the disk before Put or Delete return, as a whole or not at all, and found
// by searches of Gallery from then on. Merge writes the files anew.
type Writer struct {
	path string
	side string
	lock *files.FolderLock

	mu      sync.Mutex
	g       *Gallery
	m       *Manifest
	log     *os.File // nil: there was no change
	end     int64    // of its last record
	broken  error    // no change can be written any more
	merging bool
}

// OpenWriter opens the gallery of a folder to change it. A second writer of the folder is refused with a
// *files.HeldError. The gallery is the caller's, also after an error of a later call; say is told of locks and may be
// nil.
func OpenWriter(path string, say func(format string, args ...any)) (*Writer, error) {
	m, err := ReadManifest(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("gallery: %s cannot be changed: only a folder that embed wrote from --images, --texts "+
			"or --rows is", path)
	case err != nil:
		return nil, err
	case m.ShardRows == PhotosRows && m.Side == Image && m.From == m.Root && m.Root != "":
		return nil, fmt.Errorf("gallery: %s is kept by trainer photos: change the pictures of %s instead", path, m.Root)
	}
	w := &Writer{path: path}
	if w.lock, err = files.Lock(path, say); err != nil {
		return nil, fmt.Errorf("gallery: %w: end it, or ask it for the change", err)
	}
	if err := w.open(); err != nil {
		if w.g != nil {
			err = errors.Join(err, w.g.Close())
		}
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// open opens what is there. Nobody else changes it from now on.
func (w *Writer) open() (err error) {
	if w.m, err = ReadManifest(w.path); err != nil {
		return err
	}
	w.side = w.m.Side
	if w.g, err = Open(w.path); err != nil {
		return err
	}
	w.g.changed = w.side
	if err := w.g.unique(w.side); err != nil {
		return err
	}
	if w.m.Generation > 0 {
		err = w.reopenLog()
	}
	w.sweep()
	return err
}

// reopenLog opens the log that is there, without what a kill left of its last record.
func (w *Writer) reopenLog() (err error) {
	w.end = w.g.logEnd
	if w.log, err = os.OpenFile(filepath.Join(w.path, logFile(w.m.Generation)), os.O_RDWR, 0); err != nil {
		return err
	}
	return errors.Join(w.log.Truncate(w.end), w.log.Sync())
}

// Gallery is the gallery with all changes so far. Merge replaces it.
func (w *Writer) Gallery() *Gallery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.g
}

// Close gives the folder back, but not the gallery.
func (w *Writer) Close() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = errors.New("gallery: the writer is closed")
	if w.log != nil {
		err = w.log.Close()
		w.log = nil
	}
	return errors.Join(err, w.lock.Release())
}

// Put puts rows, all or none: a row that cannot be put is an *ItemError. It returns how many took the place of another
// one.
func (w *Writer) Put(rows []Put) (replaced int, err error) {
	c := &change{tensors: map[string][]float32{}}
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if seen[r.ID] {
			return 0, &ItemError{i, fmt.Errorf("it has the id %.200q of an earlier one: put each id once", r.ID)}
		}
		seen[r.ID] = true
		line, err := w.check(r)
		if err != nil {
			return 0, &ItemError{i, err}
		}
		c.Lines, c.ids = append(c.Lines, line), append(c.ids, r.ID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	tensors := w.g.tensors()
	for i, r := range rows {
		own := r.Own
		if len(tensors) == 1 {
			own = nil
		}
		width := w.g.tables[w.side].width
		if len(r.Features) != width || len(tensors) == 2 && len(own) != width {
			return 0, &ItemError{i, fmt.Errorf("it has %d numbers, the rows of the gallery have %d",
				len(r.Features)+len(own), width*len(tensors))}
		}
		c.tensors[tensors[0]] = append(c.tensors[tensors[0]], r.Features...)
		if own != nil {
			c.tensors[imageFeatures] = append(c.tensors[imageFeatures], own...)
		}
	}
	if c.Dead, err = w.rows(c.ids); err != nil {
		return 0, err
	}
	return len(c.Dead), w.append(c)
}

// check refuses what is no row and returns its line.
func (w *Writer) check(r *Put) (json.RawMessage, error) {
	switch {
	case r.ID == "" || len(r.ID) > maxID:
		return nil, fmt.Errorf("its id has %d bytes: give it one of 1 to %d", len(r.ID), maxID)
	case !utf8.ValidString(r.ID) || !utf8.ValidString(r.Caption):
		return nil, errors.New("its id or text is not UTF-8")
	case r.Caption != "" && w.side != Text:
		return nil, errors.New("it is a text, and the gallery has images")
	}
	for _, x := range [][]float32{r.Features, r.Own} {
		for _, v := range x {
			if v-v != 0 {
				return nil, errors.New("its features are not finite")
			}
		}
	}
	if len(r.Payload) > 0 {
		if !json.Valid(r.Payload) {
			return nil, errors.New("its payload is not JSON")
		}
		if err := strictjson.Check(r.Payload); err != nil {
			return nil, fmt.Errorf("its payload: %w", err)
		}
	}
	line := struct {
		ID      string          `json:"id"`
		Name    string          `json:"name,omitempty"`
		Caption string          `json:"caption,omitempty"`
		Payload json.RawMessage `json:"payload,omitempty"`
	}{ID: r.ID, Caption: r.Caption, Payload: r.Payload}
	if w.side == Image { // which may be a file of the folder of the images
		line.Name = r.ID
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(line); err != nil {
		return nil, err
	}
	if b.Len() > maxLine {
		return nil, fmt.Errorf("its payload and text have %d bytes, at most %d are kept of a row", b.Len(), maxLine)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// rows returns those that have some ids now.
func (w *Writer) rows(ids []string) (rows []int32, err error) {
	for _, id := range ids {
		switch row, err := w.g.ByID(w.side, id); {
		case errors.Is(err, ErrNoRow):
		case err != nil:
			return nil, err
		default:
			rows = append(rows, int32(row))
		}
	}
	return rows, nil
}

// Delete deletes the rows that have some ids, and returns how many there were.
func (w *Writer) Delete(ids []string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var each []string
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[id] {
			each = append(each, id)
		}
		seen[id] = true
	}
	rows, err := w.rows(each)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return len(rows), w.append(&change{Dead: rows})
}

// DeleteWhere deletes the rows that a filter chooses, and returns how many there were.
func (w *Writer) DeleteWhere(f *Filter) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, err := w.g.Select(w.side, f)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return len(rows), w.append(&change{Dead: rows})
}

// append writes a change to the log and then makes it.
func (w *Writer) append(c *change) error {
	if w.broken != nil {
		return w.broken
	}
	if err := w.lock.Lost(); err != nil {
		return err
	}
	if w.log == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	record, err := c.encode(w.g.tensors())
	if err != nil {
		return err
	}
	if _, err = w.log.WriteAt(record, w.end); err == nil {
		err = w.log.Sync()
	}
	if err != nil { // what is there of it must not be taken for a change
		if undo := errors.Join(w.log.Truncate(w.end), w.log.Sync()); undo != nil {
			w.broken = fmt.Errorf("gallery: the log of %s cannot be written any more: %w", w.path, undo)
		}
		return fmt.Errorf("gallery: the change was not made: %w", err)
	}
	w.end += int64(len(record))
	w.g.apply(c)
	return nil
}

// begin makes the first log of a gallery.
func (w *Writer) begin() error {
	m := *w.m
	m.Version, m.Generation = changedVersion, 1
	log, end, err := w.newLog(m.Generation, nil)
	if err != nil {
		return err
	}
	if err := w.commit(&m); err != nil {
		return errors.Join(err, log.Close())
	}
	w.m, w.log, w.end = &m, log, end
	return nil
}

// newLog writes the log of a generation, with a change where c is not nil.
func (w *Writer) newLog(generation int, c *change) (f *os.File, end int64, err error) {
	path := filepath.Join(w.path, logFile(generation))
	b := []byte(logMagic)
	if c != nil {
		record, err := c.encode(w.g.tensors())
		if err != nil {
			return nil, 0, err
		}
		b = append(b, record...)
	}
	if err := files.Replace(path, b); err != nil {
		return nil, 0, err
	}
	f, err = os.OpenFile(path, os.O_RDWR, 0)
	return f, int64(len(b)), err
}

// commit makes a manifest that of the folder, once all that it names is on the disk, and waits until it is too.
func (w *Writer) commit(m *Manifest) error {
	if err := w.lock.Lost(); err != nil {
		return err
	}
	if err := syncFolder(w.path); err != nil {
		return err
	}
	return errors.Join(m.Write(w.path), syncFolder(w.path))
}

// syncFolder waits until the names of files in a folder are on the disk.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = d.Sync() // not every system has it for folders
	return d.Close()
}
