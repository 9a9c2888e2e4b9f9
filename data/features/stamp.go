package features

import (
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/identity"
)

// Stamp says which rows of which file these are, and what the file system says of the file that is open: equal ones are
// of equal rows where they prove anything.
func (m *Matrix) Stamp() (rows string, s identity.Stamp, err error) {
	s, err = m.stamp()
	return fmt.Sprintf("%s %d rows of %d %s at %d", absolute(m.file.Name()), m.rows, m.width, m.dtype, m.start), s, err
}

func (m *Matrix) stamp() (identity.Stamp, error) {
	st, err := m.file.Stat()
	if err != nil {
		return identity.Stamp{}, fmt.Errorf("features: %w", err)
	}
	return identity.StampOfInfo(st), nil
}

// absolute is a path from the root, as far as it can be known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
