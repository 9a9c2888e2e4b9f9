package gallery

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strconv"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// WriteShard writes rows to two files of dir whose names begin with base: their tensors, and a line of JSON for each of
// n rows that says what it is. Each file is there as a whole or not at all.
func WriteShard(dir, base string, tensors []safetensors.Tensor, m Meta, n int, line func(i int) any) (s Shard, err error) {
	s = Shard{Features: base + ".safetensors", Rows: n, Inputs: n}
	meta := map[string]string{"model": m.Model, "step": strconv.Itoa(m.Step), "score": m.Score,
		"product": strconv.FormatBool(m.Product), "space": m.Space}
	s.FeaturesBytes, s.FeaturesSum, err = ReplaceSummed(filepath.Join(dir, s.Features), func(w io.Writer) error {
		return safetensors.Write(w, tensors, meta)
	})
	if err != nil {
		return s, err
	}
	return s, s.WriteNames(dir, base, line)
}

// WriteNames writes the lines of a shard alone.
func (s *Shard) WriteNames(dir, base string, line func(i int) any) (err error) {
	s.Names = base + ".jsonl"
	s.NamesBytes, s.NamesSum, err = ReplaceSummed(filepath.Join(dir, s.Names), func(w io.Writer) error {
		return WriteLines(w, s.Rows, line)
	})
	return err
}

// WriteLines writes n rows as lines of JSON.
func WriteLines(w io.Writer, n int, row func(i int) any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for i := range n {
		if err := e.Encode(row(i)); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceSummed is files.ReplaceFrom that returns the size of what was written and its CRC-32C, as a manifest has them.
func ReplaceSummed(path string, fill func(w io.Writer) error) (size int64, sum string, err error) {
	h := crc32.New(castagnoli)
	n := &counter{}
	err = files.ReplaceFrom(path, func(w io.Writer) error { return fill(io.MultiWriter(w, h, n)) })
	return n.n, fmt.Sprintf("%08x", h.Sum32()), err
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }
