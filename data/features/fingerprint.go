package features

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/geoalign/geoalign/internal/identity"
)

// Fingerprint returns a sum of what the pool is made of: all bytes of its files, which the user's book knows where they
// did not change since they were last read, which rows of them, and how they are centred. A copy of the files has the
// same.
func (p *Pool) Fingerprint(ctx context.Context) (string, error) {
	h := sha256.New()
	book := identity.User()
	for _, m := range []*Matrix{p.main, p.more} {
		if m == nil {
			continue
		}
		sum, err := book.Sum(ctx, m.file.Name())
		if err != nil {
			return "", fmt.Errorf("features: %w", err)
		}
		fmt.Fprintln(h, m.rows, m.width, m.dtype, m.start, sum)
	}
	_ = book.Save() // else they are read again another time
	_ = binary.Write(h, binary.LittleEndian, []float32(p.centre))
	_ = binary.Write(h, binary.LittleEndian, p.rows) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil)), nil
}
