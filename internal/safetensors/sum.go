package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
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
	key := []byte(`"` + SumKey + `":"`)
	at := bytes.Index(b[:start], key)
	if at < 0 || len(want) != len(SumZero) || at+len(key)+len(SumZero) > start {
		return errors.New("it has no checksum")
	}
	at += len(key)
	sum := crc32.Update(0, castagnoli, b[:at])
	sum = crc32.Update(sum, castagnoli, []byte(SumZero))
	sum = crc32.Update(sum, castagnoli, b[at+len(SumZero):])
	if got := fmt.Sprintf("%08x", sum); got != want {
		return fmt.Errorf("it was damaged: its checksum is %s, and %s is written in it", got, want)
	}
	return nil
}
