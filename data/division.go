package data

import (
	"crypto/sha256"
	"encoding/binary"

	"golang.org/x/text/unicode/norm"

	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/normalform"
)

// Divide says which images of a list are in a split (train, val or test), of which val and test have a share in percent. An image is
// in the split that the first 8 bytes of the SHA-256 of its clean name in the normal form NFC say, as a big-endian number
// modulo 1,000,000 in ten-thousandths of a percent: from 0 on val, then test, then train. So all entries of an image are in one split,
// and new images move none to another.
func Divide(split string, val, test float64) func(name string) bool {
	return func(name string) bool {
		sum := sha256.Sum256([]byte(normalform.String(norm.NFC, names.Clean(name))))
		at := float64(binary.BigEndian.Uint64(sum[:])%1_000_000) / 10_000
		switch {
		case at < val:
			return split == "val"
		case at < val+test:
			return split == "test"
		}
		return split == "train"
	}
}
