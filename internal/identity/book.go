package identity

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/usercache"
)

// Book remembers the sums of files with the stamps that they had, so that a file is read once as long
// as it stays as it is. It is a cache: a book that is lost, damaged or of another version is an empty
// one. Many goroutines may use it at once.
type Book struct {
	// Pace is that of OfPaced for files that are read; nil: none. Set it before the book is in use.
	Pace func(work func() error) error

	path  string
	most  int // entries that are kept in the file, the newest; 0: all
	mu    sync.Mutex
	known map[Sum]entry // by the sum of the absolute path
	fresh map[Sum]bool  // those that were noted since the book was opened or saved
}

// entry is what a book knows of a file.
type entry struct {
	Stamp Stamp
	Sum   Sum
}

// The file of a book: magic, records of equal length, CRC-32C of both.
const (
	bookMagic = "geoalign sums 1\n"
	bookMost  = 1 << 30 // bytes of a book

	recordBytes = 72
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
	b := &Book{path: path, known: map[Sum]entry{}, fresh: map[Sum]bool{}}
	for _, r := range readBook(path) {
		b.known[r.Path] = r.entry
	}
	return b
}

// readBook returns the records of the book at path, none where there is none that can be used.
func readBook(path string) []record {
	if path == "" {
		return nil
	}
	text, err := files.Read(path, bookMost)
	if err != nil {
		return nil
	}
	list, _ := parseBook(text)
	return list
}

// parseBook reads the records of a book.
func parseBook(text []byte) ([]record, bool) {
	n := len(text) - len(bookMagic) - crc32.Size
	if n < 0 || n%recordBytes != 0 || string(text[:len(bookMagic)]) != bookMagic {
		return nil, false
	}
	end := len(text) - crc32.Size
	if binary.LittleEndian.Uint32(text[end:]) != crc32.Checksum(text[:end], castagnoli) {
		return nil, false
	}
	list := make([]record, n/recordBytes)
	for i := range list {
		list[i].read(text[len(bookMagic)+i*recordBytes:][:recordBytes])
	}
	return list, true
}

// read takes the bytes of a record.
func (r *record) read(b []byte) {
	le := binary.LittleEndian
	n := copy(r.Path[:], b)
	for i, dst := range []*int64{&r.Stamp.Size, &r.Stamp.Modified, &r.Stamp.Changed} {
		*dst = int64(le.Uint64(b[n+8*i:]))
	}
	r.Stamp.File, r.Stamp.Device = le.Uint64(b[n+24:]), le.Uint64(b[n+32:])
	copy(r.Sum[:], b[n+40:])
}

// append adds the bytes of a record to b.
func (r *record) append(b []byte) []byte {
	b = append(b, r.Path[:]...)
	for _, v := range []uint64{uint64(r.Stamp.Size), uint64(r.Stamp.Modified), uint64(r.Stamp.Changed), r.Stamp.File,
		r.Stamp.Device} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return append(b, r.Sum[:]...)
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

// SumOf returns the sum of several files in their order, noted under a name that begins with a path: as the
// book has it if their stamps are those that they had then, else that of their bytes, which it reads.
func (b *Book) SumOf(ctx context.Context, name string, paths []string) (Sum, error) {
	stamp := func() (Stamp, error) {
		list := make([]Stamp, len(paths))
		for i, path := range paths {
			var err error
			if list[i], err = StampOf(path); err != nil {
				return Stamp{}, err
			}
		}
		return Together(list...), nil
	}
	before, err := stamp()
	if err != nil {
		return Sum{}, err
	}
	if sum, ok := b.Known(name, before); ok {
		return sum, nil
	}
	l := NewList()
	for _, path := range paths {
		sum, err := Of(ctx, path)
		if err != nil {
			return Sum{}, err
		}
		l.Add(sum.String())
	}
	if after, err := stamp(); err == nil && after == before {
		b.Note(name, before, l.Sum())
	}
	return l.Sum(), nil
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
	k := key(path)
	b.known[k], b.fresh[k] = entry{s, sum}, true
}

// checked is what is noted of contents that a check found right.
var checked = Sum{1}

// Check returns nil where the book says that check did so for the same contents, which their stamp
// proves, and else what check returns; it then notes that there was nothing wrong. The name says what is
// checked, and against what: it begins with a path.
func (b *Book) Check(name string, stamp func() (Stamp, error), check func() error) error {
	before, err := stamp()
	if err != nil {
		return err
	}
	if _, ok := b.Known(name, before); ok {
		return nil
	}
	if err := check(); err != nil {
		return err
	}
	if after, err := stamp(); err == nil && after == before {
		b.Note(name, before, checked)
	}
	return nil
}

// NoteChecked notes for Check that contents are right, as their writer knows.
func (b *Book) NoteChecked(name string, s Stamp) { b.Note(name, s, checked) }

// Save writes the book if it has learned anything, beside what other processes wrote meanwhile. An error
// says that the same files will be read again another time, no more.
func (b *Book) Save() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path == "" || len(b.fresh) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(b.path), 0o777); err != nil {
		return err
	}
	if b.most > 0 {
		defer usercache.Lock(b.path)()
	}
	list := slices.DeleteFunc(readBook(b.path), func(r record) bool { return b.fresh[r.Path] })
	for k := range b.fresh {
		list = append(list, record{k, b.known[k]})
	}
	if n := len(list) - b.most; b.most > 0 && n > 0 {
		list = list[n:]
	}
	text := []byte(bookMagic)
	for i := range list {
		text = list[i].append(text)
	}
	text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
	if err := files.Replace(b.path, text); err != nil {
		return err
	}
	clear(b.fresh)
	return nil
}
