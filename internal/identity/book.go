package identity

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/geoalign/geoalign/internal/files"
)

// Book remembers the sums of files with the stamps that they had, so that a file is read once as long
// as it stays as it is. It is a cache: a book that is lost, damaged or of another version is an empty
// one. Many goroutines may use it at once.
type Book struct {
	// Pace is that of OfPaced for files that are read; nil: none. Set it before the book is in use.
	Pace func(work func() error) error

	path  string
	mu    sync.Mutex
	known map[Sum]entry // by the sum of the absolute path
	dirty bool
}

// entry is what a book knows of a file.
type entry struct {
	Stamp Stamp
	Sum   Sum
}

// The file of a book: magic, records of equal length, CRC-32C of both.
const (
	bookMagic = "geoalign sums 1\n"
	bookMost  = 1 << 30 // bytes of a book; a record has 72
)

// record is an entry as it is stored.
type record struct {
	Path Sum
	entry
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenBook opens the book at path, an empty one where there is none that can be used. An empty path is
// that of a book that is never saved.
func OpenBook(path string) *Book {
	b := &Book{path: path, known: map[Sum]entry{}}
	if path == "" {
		return b
	}
	text, err := files.Read(path, bookMost)
	if err != nil {
		return b
	}
	list, ok := parseBook(text)
	if !ok {
		return b
	}
	for _, r := range list {
		b.known[r.Path] = r.entry
	}
	return b
}

// parseBook reads the records of a book.
func parseBook(text []byte) ([]record, bool) {
	size := binary.Size(record{})
	n := len(text) - len(bookMagic) - crc32.Size
	if n < 0 || n%size != 0 || string(text[:len(bookMagic)]) != bookMagic {
		return nil, false
	}
	end := len(text) - crc32.Size
	if binary.LittleEndian.Uint32(text[end:]) != crc32.Checksum(text[:end], castagnoli) {
		return nil, false
	}
	list := make([]record, n/size)
	err := binary.Read(bytes.NewReader(text[len(bookMagic):end]), binary.LittleEndian, list)
	return list, err == nil
}

// key is what an entry is found by.
func key(path string) Sum {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return OfBytes([]byte(path))
}

// Sum returns the sum of the file at path: the one in the book if the file has the stamp that it had
// then, else that of its bytes, which it reads and notes.
func (b *Book) Sum(ctx context.Context, path string) (Sum, error) {
	before, err := StampOf(path)
	if err != nil {
		return Sum{}, err
	}
	if sum, ok := b.Known(path, before); ok {
		return sum, nil
	}
	sum, err := OfPaced(ctx, path, b.Pace)
	if err != nil {
		return Sum{}, err
	}
	if after, err := StampOf(path); err == nil && after == before {
		b.Note(path, before, sum)
	}
	return sum, nil
}

// Known returns the sum of the file at path if the book has it with this stamp.
func (b *Book) Known(path string, now Stamp) (Sum, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.known[key(path)]
	return e.Sum, ok && e.Stamp == now
}

// Note notes the sum of a file that had the stamp before and after it was read. A file that changed
// just now is not noted, as it might change again without another stamp.
func (b *Book) Note(path string, s Stamp, sum Sum) {
	if !s.Proves(time.Now()) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[key(path)], b.dirty = entry{s, sum}, true
}

// Save writes the book if it has learned anything. An error says that the same files will be read again
// another time, no more.
func (b *Book) Save() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path == "" || !b.dirty {
		return nil
	}
	var w bytes.Buffer
	w.WriteString(bookMagic)
	for k, e := range b.known {
		if err := binary.Write(&w, binary.LittleEndian, record{k, e}); err != nil {
			return err
		}
	}
	text := binary.LittleEndian.AppendUint32(w.Bytes(), crc32.Checksum(w.Bytes(), castagnoli))
	if err := errors.Join(os.MkdirAll(filepath.Dir(b.path), 0o777), files.Replace(b.path, text)); err != nil {
		return err
	}
	b.dirty = false
	return nil
}
