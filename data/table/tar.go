package table

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/names"
)

// Member is a file in a tar file, which is a field of a record: members of a record share their name up to the first
// dot behind the last slash, as WebDataset has it.
type Member struct {
	Name   string
	Record string // name up to the dot
	Field  string // behind it, in small letters
	Offset int64  // of the first byte
	Size   int64
	Plain  bool // its bytes lie as they are: it is not a link, and not sparse

	r io.Reader
}

// Read returns the bytes, before the next member is met.
func (m Member) Read() ([]byte, error) {
	b, err := io.ReadAll(m.r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return b, nil
}

// errCompressed says that a shard is not a plain tar file.
var errCompressed = errors.New("it is compressed: unpack it to a .tar file, as gunzip does; images gain nothing by it")

// ErrBehindEnd says that an archive was read up to the mark of its end, and has more.
var ErrBehindEnd = errors.New("something follows the mark that ends the archive and is not read: join archives with " +
	"tar --concatenate, or give them as several files")

// Members calls take for each member of a tar file of size bytes that has a record and a field, in their order. lost is
// why the file could not be read up to its end, be it an error of take: what came before may be used. An error means
// that the file is not a tar file.
func Members(r io.ReadSeeker, size int64, take func(m Member) error) (lost, err error) {
	if err := checkPlain(r); err != nil {
		return nil, err
	}
	t := tar.NewReader(r)
	end := int64(0) // of the last member
	for first := true; ; first = false {
		h, err := t.Next()
		if err == io.EOF && size-end < 512 {
			err = errors.New("it has no end")
		}
		switch {
		case err == io.EOF:
			return ended(r)
		case err != nil && first && size > 0:
			return nil, fmt.Errorf("it is not a tar file: %w", err)
		case err != nil:
			return err, nil
		}
		offset, err := r.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		plain := h.Typeflag == tar.TypeReg && !isSparse(h)
		if end = offset; plain { // whose size is that of its bytes here
			if h.Size > size-offset {
				return fmt.Errorf("%s ends in the middle", h.Name), nil
			}
			end += (h.Size + 511) / 512 * 512
		}
		record, field, ok := splitMember(h.Name)
		if !ok || h.Typeflag == tar.TypeDir {
			continue
		}
		if err := take(Member{h.Name, record, field, offset, h.Size, plain, t}); err != nil {
			return err, nil
		}
	}
}

// checkPlain refuses compressed files, and goes back to the start.
func checkPlain(r io.ReadSeeker) error {
	var b [4]byte
	n, err := io.ReadFull(r, b[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	for _, magic := range []string{gzipMagic, "\x28\xb5\x2f\xfd", "BZh", "\xfd7zX"} {
		if bytes.HasPrefix(b[:n], []byte(magic)) {
			return errCompressed
		}
	}
	_, err = r.Seek(0, io.SeekStart)
	return err
}

// splitMember returns the record and the field of the name of a member.
func splitMember(name string) (record, field string, ok bool) {
	dir, base := path.Split(name)
	before, after, found := strings.Cut(base, ".")
	if !found || before == "" || after == "" {
		return "", "", false
	}
	return names.Clean(dir + before), strings.ToLower(after), true
}

// isSparse says whether the bytes of a member do not lie as they are.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// ended looks behind the mark that ends the archive, up to which tar files are read: of two that were put together as
// bytes (cat a.tar b.tar) the second is lost. Zeros fill the last block.
func ended(r io.Reader) (lost, err error) {
	block := make([]byte, 1<<16)
	for {
		n, err := r.Read(block)
		switch {
		case slices.ContainsFunc(block[:n], func(b byte) bool { return b != 0 }):
			return ErrBehindEnd, nil
		case err == io.EOF:
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
}
