package identity

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// A JSON file can have its own checksum, the CRC-32C of its bytes with zeros instead of the digits: the first
// key of that name, as an encoder with an indent writes it. Whatever else changes from version to version, this does
// not.
const (
	SealKey  = `"checksum": "`
	SealZero = "00000000" // what the digits are before Seal
)

// Seal fills in the checksum of a text, in place.
func Seal(text []byte) error {
	at := bytes.Index(text, []byte(SealKey+SealZero+`"`))
	if at < 0 {
		return errors.New("there is no room for the checksum")
	}
	copy(text[at+len(SealKey):], fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)))
	return nil
}

// CheckSeal compares a text with its checksum.
func CheckSeal(text []byte) error {
	at := bytes.Index(text, []byte(SealKey))
	if at < 0 || len(text) < at+len(SealKey)+len(SealZero) {
		return errors.New("it has no checksum: it was changed after it was saved")
	}
	zeroed := bytes.Clone(text)
	digits := zeroed[at+len(SealKey):][:len(SealZero)]
	want := string(digits)
	copy(digits, SealZero)
	if got := fmt.Sprintf("%08x", crc32.Checksum(zeroed, castagnoli)); got != want {
		return fmt.Errorf("its checksum is %s, want %q: it was changed after it was saved", got, want)
	}
	return nil
}
