package features

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
)

// A .npz file is a zip archive of .npy files. Members of numpy.savez lie in it as they are and are
// mapped with it. Those of numpy.savez_compressed are inflated into memory.

// maxInflated is the largest member that is inflated, in bytes.
const maxInflated = 2 << 30

// openNPZ finds the member of a name, without .npy.
func (m *Matrix) openNPZ(name string) (err error) {
	var size int64
	if m.file, size, err = files.Open(m.path, 0); err != nil {
		return err
	}
	f, err := npzMember(m.file, size, name)
	if err != nil {
		return err
	}
	if f.Method == zip.Store {
		return m.mapMember(f)
	}
	if m.mapped, err = inflate(f, maxInflated); err != nil {
		return err
	}
	m.inflated = true
	h, err := readNPYHeader(bytes.NewReader(m.mapped))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if err := m.takeNPY(h, 0); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// mapMember takes a member that is stored as it is.
func (m *Matrix) mapMember(f *zip.File) error {
	at, err := f.DataOffset()
	if err != nil {
		return fmt.Errorf("%s: %w: copy the file again", f.Name, err)
	}
	size := int64(f.UncompressedSize64)
	if size < 0 || f.CompressedSize64 != f.UncompressedSize64 {
		return fmt.Errorf("%s: its sizes %d and %d differ: copy the file again", f.Name, f.CompressedSize64, f.UncompressedSize64)
	}
	h, err := readNPYHeader(io.NewSectionReader(m.file, at, size))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if err := m.takeNPY(h, at); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if n := int64(m.rows) * int64(m.width); n > size || h.start+n*int64(m.dtype.Size()) != size {
		return fmt.Errorf("%s has %d bytes, and its %d rows of %d numbers need others: save it again", f.Name, size, m.rows, m.width)
	}
	return m.checkMember(f, at, size)
}

// checkMember reads a member that will be mapped, of size bytes from at on, and compares it with its checksum. The user's book knows
// members that were whole, so that each is read once.
func (m *Matrix) checkMember(f *zip.File, at, size int64) error {
	book := identity.User()
	name := fmt.Sprintf("%s %s at %d has the CRC-32 %08x", absolute(m.path), f.Name, at, f.CRC32)
	err := book.Check(name, m.stamp, func() error {
		h := crc32.NewIEEE()
		if _, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(m.file, at, size), make([]byte, 1<<20)); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		return checkCRC(f, h.Sum32())
	})
	if err == nil {
		_ = book.Save() // else it is read again another time
	}
	return err
}

// checkCRC compares the checksum of what was read of a member with that of the archive.
func checkCRC(f *zip.File, got uint32) error {
	if got != f.CRC32 {
		return fmt.Errorf("%s was damaged: its CRC-32 is %08x, and %08x is written in the archive: copy the file again", f.Name, got, f.CRC32)
	}
	return nil
}

// npzMember finds a member in the directory of an archive.
func npzMember(r io.ReaderAt, size int64, name string) (*zip.File, error) {
	z, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, errors.New("it is no .npz file, or it was cut short: its directory, at the end, is not there")
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range z.File {
		member := strings.TrimSuffix(f.Name, ".npy")
		if slices.Contains(names, member) {
			return nil, fmt.Errorf("it has %q twice", f.Name)
		}
		names = append(names, member)
	}
	if name, err = choose(name, names); err != nil {
		return nil, err
	}
	f := z.File[slices.Index(names, name)]
	switch {
	case f.Flags&1 != 0:
		return nil, fmt.Errorf("%s is encrypted: save it with numpy.savez", f.Name)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, fmt.Errorf("%s is compressed by method %d: save it with numpy.savez", f.Name, f.Method)
	}
	return f, nil
}

// inflate returns the bytes of a compressed member of at most most bytes.
func inflate(f *zip.File, most uint64) ([]byte, error) {
	if f.UncompressedSize64 > most {
		return nil, fmt.Errorf("%s is compressed and has %d bytes: at most %d are inflated into memory, so save it with numpy.savez or numpy.save, which are mapped", f.Name, f.UncompressedSize64, most)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	b := make([]byte, 0, min(f.UncompressedSize64, 64<<20)) // what a damaged directory says is not believed at once
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, checkCRC(f, crc32.ChecksumIEEE(b)) // the reader takes a checksum of 0 for none
		case err != nil:
			return nil, fmt.Errorf("%s: %w: copy the file again", f.Name, err)
		case uint64(len(b)) > f.UncompressedSize64:
			return nil, fmt.Errorf("%s has more bytes than its directory says: copy the file again", f.Name)
		}
	}
}
