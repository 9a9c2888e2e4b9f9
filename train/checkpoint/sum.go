package checkpoint

import (
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
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(f, 0, size),
		make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return sumText(sum.Sum32()), nil
}
