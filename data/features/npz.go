package features

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/budget"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/words"
)

// A .npz file is a zip archive of .npy files. Members of numpy.savez lie in it as they are and are
// mapped with it. Those of numpy.savez_compressed are inflated into memory.

// A member that is inflated may have so many bytes, and so many for each of the compressed ones. Zeros become a
// thousandth, features a tenth at best.
const (
	maxInflated   = 2 << 30
	inflatedFree  = 64 << 20
	inflatedRatio = 100
)

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
	return m.inflate(f, size)
}

// mapMember takes a member that is stored as it is.
func (m *Matrix) mapMember(f *zip.File) error {
	at, err := f.DataOffset()
	if err != nil {
		return fmt.Errorf("%s: %w: copy the file again", f.Name, err)
	}
	size := int64(f.UncompressedSize64)
	if size < 0 || f.CompressedSize64 != f.UncompressedSize64 {
		return fmt.Errorf("%s: its sizes %d and %d differ: copy the file again", f.Name, f.CompressedSize64,
			f.UncompressedSize64)
	}
	h, err := readNPYHeader(io.NewSectionReader(m.file, at, size))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if err := m.takeNPY(h, at); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if n := int64(m.rows) * int64(m.width); n > size || h.start+n*int64(m.dtype.Size()) != size {
		return fmt.Errorf("%s has %d bytes, and its %d rows of %d numbers need others: save it again", f.Name, size,
			m.rows, m.width)
	}
	return m.checkMember(f, at, size)
}

// checkMember reads a member that will be mapped, of size bytes from at on, and compares it with its checksum. The
// user's book knows members that were whole, so that each is read once.
func (m *Matrix) checkMember(f *zip.File, at, size int64) error {
	book := identity.User()
	name := fmt.Sprintf("%s %s at %d has the CRC-32 %08x", absolute(m.path), f.Name, at, f.CRC32)
	err := book.Check(name, m.stamp, func() error {
		h := crc32.NewIEEE()
		if _, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(m.file, at, size),
			make([]byte, 1<<20)); err != nil {
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
		return fmt.Errorf("%s was damaged: its CRC-32 is %08x, and %08x is written in the archive: copy the file again",
			f.Name, got, f.CRC32)
	}
	return nil
}

// npzMember finds a member in the directory of an archive.
func npzMember(r io.ReaderAt, size int64, name string) (*zip.File, error) {
	z, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, errors.New("it is not a .npz file, or it was cut short: its directory, at the end, is not there")
	}
	if err != nil {
		return nil, err
	}
	var names []string
	seen := make(map[string]bool, len(z.File))
	for _, f := range z.File {
		member := strings.TrimSuffix(f.Name, ".npy")
		if seen[member] {
			return nil, fmt.Errorf("it has %s twice", words.Shown(f.Name))
		}
		seen[member] = true
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

// inflate reads a compressed member of a file of size bytes into memory. What its header says is compared with the
// directory, and both with what a file of this size may become, before memory is taken for it.
func (m *Matrix) inflate(f *zip.File, size int64) error {
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	fail := func(err error) error { return fmt.Errorf("%s: %w: copy the file again", f.Name, err) }
	head := make([]byte, min(f.UncompressedSize64, 12+maxNPYHeader))
	if _, err := io.ReadFull(r, head); err != nil {
		return fail(err)
	}
	h, err := readNPYHeader(bytes.NewReader(head))
	if err == nil {
		err = m.takeNPY(h, 0)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	row := uint64(m.width) * uint64(m.dtype.Size())
	if n := f.UncompressedSize64; n < uint64(h.start) || (n-uint64(h.start))/row != uint64(m.rows) ||
		(n-uint64(h.start))%row != 0 {
		return fmt.Errorf("%s has %d bytes, and its %d rows of %d numbers need others: save it again", f.Name, n,
			m.rows, m.width)
	}
	limit := min(inflatedFree+inflatedRatio*min(int64(min(f.CompressedSize64, math.MaxInt64)), size), maxInflated)
	need := int64(f.UncompressedSize64)
	if err := budget.Check(f.Name+", which is compressed,", need, limit,
		"save it with numpy.savez or numpy.save, which are mapped"); err != nil {
		return err
	}
	m.mapped = make([]byte, need)
	if _, err := io.ReadFull(r, m.mapped[copy(m.mapped, head):]); err != nil {
		return fail(err)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 { // at the end the checksum is compared
		return fail(errors.New("it has more bytes than its directory says"))
	} else if err != nil && err != io.EOF {
		return fail(err)
	}
	if err := checkCRC(f, crc32.ChecksumIEEE(m.mapped)); err != nil { // the reader takes a checksum of 0 for none
		return err
	}
	m.inflated = true
	return nil
}
