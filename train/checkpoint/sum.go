package checkpoint

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A checkpoint has a checksum for each file: CRC-32C, which processors compute at more than
// ten gigabytes a second, so that neither a save nor a load is noticeably longer. It finds
// every change of up to 32 bits in a row and misses others once in four thousand million.
//
// It is one of whole files, checked when a checkpoint is opened and not as tensors are read,
// since what is opened decides the configuration, the vocabulary and the shapes of the model:
// once a model is half built from a checkpoint it is too late to take the one before. Only
// the files that the caller is going to read are checked, each in one pass; the tensors are
// then read through the same open file, by way of the memory that the system keeps of it, and
// so are the bytes that were checked even if the folder is removed or replaced meanwhile.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumText is a checksum as state.json writes it.
func sumText(sum uint32) string { return fmt.Sprintf("%08x", sum) }

// nameSum is the checksum of the name of a folder as latest writes it, on a line after it: a
// changed digit would else name another checkpoint that is whole.
func nameSum(name string) string {
	return "crc32c " + sumText(crc32.Checksum([]byte(name), castagnoli))
}

// sumFile returns the checksum of an open file.
func sumFile(f *os.File, size int64) (string, error) {
	sum := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(f, 0, size), make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return sumText(sum.Sum32()), nil
}

// state.json has its own checksum, that of its bytes with zeros in the place of the digits.
// This holds for all versions from 3 on, whatever else they hold.
const (
	sealKey  = `"checksum": "`
	sealZero = "00000000"
)

// seal fills in the checksum of the text of a state.json.
func seal(text []byte) error {
	at := bytes.Index(text, []byte(sealKey+sealZero+`"`))
	if at < 0 {
		return fmt.Errorf("%s has no room for its checksum", manifestName)
	}
	copy(text[at+len(sealKey):], sumText(crc32.Checksum(text, castagnoli)))
	return nil
}

// checkSeal compares the text of a state.json with its checksum.
func checkSeal(text []byte) error {
	at := bytes.Index(text, []byte(sealKey))
	if at < 0 || len(text) < at+len(sealKey)+len(sealZero) {
		return fmt.Errorf("it has no checksum: it was changed after it was saved")
	}
	zeroed := bytes.Clone(text)
	digits := zeroed[at+len(sealKey):][:len(sealZero)]
	want := string(digits)
	copy(digits, sealZero)
	if got := sumText(crc32.Checksum(zeroed, castagnoli)); got != want {
		return fmt.Errorf("its checksum is %s, want %q: it was changed after it was saved", got, want)
	}
	return nil
}
