package search

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// castagnoli is the polynomial of CRC-32C, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fingerprintRows is how many rows a fingerprint reads. All rows would be read as slowly as for
// an exact search; a file that was written anew differs in any of them.
const fingerprintRows = 1024

// fingerprintOf returns a checksum of rows that are spread over a pool, the first and the last
// among them, of their values in float32: a copy of the file in another format that is exact has
// the same.
func fingerprintOf(p Pool) (string, error) {
	n, d := p.Rows(), p.Width()
	row, b := make([]float32, d), make([]byte, 4*d)
	var sum uint32
	for i, count := 0, min(n, fingerprintRows); i < count; i++ {
		if err := p.Row(spread(i, count, n), row); err != nil {
			return "", err
		}
		for c, v := range row {
			binary.LittleEndian.PutUint32(b[4*c:], math.Float32bits(v))
		}
		sum = crc32.Update(sum, castagnoli, b)
	}
	return fmt.Sprintf("%08x", sum), nil
}

// fingerprint notes that of the pool.
func (b *builder) fingerprint() (err error) {
	b.header.Fingerprint, err = fingerprintOf(b.pool)
	return err
}

// StaleError says that an index is of other rows than the pool that it was opened with.
type StaleError struct {
	Path   string
	Detail string
}

// Error says what differs and what to do.
func (e *StaleError) Error() string {
	return fmt.Sprintf("search: %s is the index of other rows: %s: build it again, or give the features that it was built of", e.Path, e.Detail)
}
