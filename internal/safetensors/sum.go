package safetensors

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"

	"github.com/geoalign/geoalign/internal/files"
)

// The checksum of a file is a string of its metadata: CRC-32C of the whole file with zeros in
// place of the checksum's digits.
const (
	SumKey  = "crc32c"
	SumZero = "00000000"
)

// castagnoli is the polynomial of CRC-32C, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// WriteSummed is Write with a checksum in the metadata, for which it writes twice.
func WriteSummed(w io.Writer, tensors []Tensor, meta map[string]string) error {
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[SumKey] = SumZero
	sum := crc32.New(castagnoli)
	if err := Write(sum, tensors, meta); err != nil {
		return err
	}
	meta[SumKey] = fmt.Sprintf("%08x", sum.Sum32())
	return Write(w, tensors, meta)
}

// CheckSum compares the bytes of a file, whose header NewReader has accepted, with the checksum
// want of its metadata.
func CheckSum(b []byte, want string) error {
	start := 8 + int(binary.LittleEndian.Uint64(b))
	sum, err := headSum(b[:start], want)
	if err != nil {
		return err
	}
	return sameSum(crc32.Update(sum, castagnoli, b[start:]), want)
}

// headSum returns the checksum of everything before the data of a file, with zeros in place of its digits.
func headSum(head []byte, want string) (uint32, error) {
	key := []byte(`"` + SumKey + `":"`)
	at := bytes.Index(head, key)
	if at < 0 || len(want) != len(SumZero) || at+len(key)+len(SumZero) > len(head) {
		return 0, errors.New("it has no checksum")
	}
	at += len(key)
	sum := crc32.Update(0, castagnoli, head[:at])
	sum = crc32.Update(sum, castagnoli, []byte(SumZero))
	return crc32.Update(sum, castagnoli, head[at+len(SumZero):]), nil
}

func sameSum(sum uint32, want string) error {
	if got := fmt.Sprintf("%08x", sum); got != want {
		return fmt.Errorf("it was damaged: its checksum is %s, and %s is written in it", got, want)
	}
	return nil
}

// CheckFile is CheckSum of the file at path, which it reads. It ends early with the error of ctx.
func CheckFile(ctx context.Context, path string) error {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := NewReader(f, size)
	if err != nil {
		return err
	}
	head := make([]byte, s.start)
	if _, err := f.ReadAt(head, 0); err != nil {
		return err
	}
	want := s.meta[SumKey]
	sum, err := headSum(head, want)
	if err != nil {
		return err
	}
	b := make([]byte, pieceLen)
	for at := s.start; at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(b[:min(int64(len(b)), size-at)], at)
		if n == 0 {
			return err
		}
		sum = crc32.Update(sum, castagnoli, b[:n])
		at += int64(n)
	}
	return sameSum(sum, want)
}
