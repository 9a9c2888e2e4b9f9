package features

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/geoalign/geoalign/internal/identity"
)

// fingerprintRows is how many rows of a file a fingerprint reads.
const fingerprintRows = 256

// Fingerprint returns a checksum of what the pool is made of: the stamps of its files, some
// of their rows, and which rows they are. Files that were written anew have another one.
func (p *Pool) Fingerprint() (string, error) {
	h := sha256.New()
	for _, m := range []*Matrix{p.main, p.more} {
		if m == nil {
			continue
		}
		if err := m.sumInto(h); err != nil {
			return "", err
		}
	}
	_ = binary.Write(h, binary.LittleEndian, []float32(p.centre))
	_ = binary.Write(h, binary.LittleEndian, p.rows) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sumInto adds the stamp and some rows of the file to a hash.
func (m *Matrix) sumInto(h hash.Hash) error {
	st, err := m.file.Stat()
	if err != nil {
		return fmt.Errorf("features: %w", err)
	}
	fmt.Fprintln(h, m.rows, m.width, m.dtype, m.start, identity.StampOfInfo(st).Shared())
	row := make([]float32, m.width)
	count := min(m.rows, fingerprintRows)
	for i := range count {
		if err := m.ReadRows(int(int64(i)*int64(m.rows)/int64(count)), row); err != nil {
			return err
		}
		_ = binary.Write(h, binary.LittleEndian, row)
	}
	return nil
}
