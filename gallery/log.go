package gallery

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// The log of a generation has the changes since its files were written, one record after another:
//
//	bytes of the body, CRC-32C of the body         two little-endian uint32
//	bytes of the JSON of the change, the JSON      the body
//	for each tensor the rows that were put         little-endian float32
//
// A record is on the disk before its change is acknowledged, so what a kill leaves of the last one was not, and is
// passed over.

const (
	logMagic      = "geoalign changes 1\n"
	maxRecord     = 1 << 30
	maxGeneration = 99_999
)

// logFile is the name of the log of a generation.
func logFile(generation int) string { return fmt.Sprintf("changes-%05d.log", generation) }

// change is what one record says: rows that die, and rows that are put after all there are.
type change struct {
	Dead  []int32           `json:"dead,omitempty"`
	Lines []json.RawMessage `json:"put,omitempty"` // an object of each row, with its id

	ids     []string
	tensors map[string][]float32 // (n, C) by name
}

// encode returns the record of a change of tensors in this order.
func (c *change) encode(tensors []string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 12))
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, err
	}
	head := b.Len() - 12
	for _, name := range tensors {
		if err := safetensors.WriteFloats(&b, c.tensors[name]); err != nil {
			return nil, err
		}
	}
	out := b.Bytes()
	if len(out) > maxRecord {
		return nil, fmt.Errorf("gallery: a change has %d bytes, at most %d are written at once: make several", len(out),
			maxRecord)
	}
	binary.LittleEndian.PutUint32(out, uint32(len(out)-8))
	binary.LittleEndian.PutUint32(out[8:], uint32(head))
	binary.LittleEndian.PutUint32(out[4:], crc32.Checksum(out[8:], castagnoli))
	return out, nil
}

// decode reads the body of a record: rows rows are there before it.
func decode(body []byte, tensors []string, width, rows int) (*change, error) {
	bad := errors.New("its record says something that no change is")
	if len(body) < 4 {
		return nil, bad
	}
	head := int(binary.LittleEndian.Uint32(body))
	if body = body[4:]; head > len(body) {
		return nil, bad
	}
	c := &change{tensors: map[string][]float32{}}
	if err := json.Unmarshal(body[:head], c); err != nil {
		return nil, err
	}
	body = body[head:]
	n := len(c.Lines)
	if len(body) != 4*n*width*len(tensors) || n > math.MaxInt32-rows {
		return nil, bad
	}
	for _, row := range c.Dead {
		if row < 0 || int(row) >= rows {
			return nil, bad
		}
	}
	for i, line := range c.Lines {
		id, err := lineID(rows+i, line)
		if err != nil {
			return nil, err
		}
		c.ids = append(c.ids, id)
	}
	for _, name := range tensors {
		x := make([]float32, n*width)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[4*i:]))
		}
		c.tensors[name], body = x, body[4*len(x):]
	}
	return c, nil
}

// replay applies the log of the generation of a manifest, which must be there.
func (g *Gallery) replay(m *Manifest) error {
	g.changed = m.Side
	if err := g.readLog(filepath.Join(g.Path, logFile(m.Generation))); err != nil {
		return fmt.Errorf("gallery: %w", err)
	}
	return nil
}

// readLog applies the records of a log and sets g.logEnd, where the last whole one ends.
func (g *Gallery) readLog(path string) error {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, len(logMagic))
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != logMagic {
		return fmt.Errorf("%s is not a log of changes that this program reads", path)
	}
	tensors := g.tensors()
	for g.logEnd = int64(len(logMagic)); g.logEnd+8 <= size; {
		var head [8]byte
		if _, err := f.ReadAt(head[:], g.logEnd); err != nil {
			return err
		}
		n := int64(binary.LittleEndian.Uint32(head[:]))
		if n == 0 || g.logEnd+8+n > size { // the last one, which a kill cut, or a power cut left empty
			return nil
		}
		body := make([]byte, n)
		if _, err := f.ReadAt(body, g.logEnd+8); err != nil {
			return err
		}
		whole := crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(head[4:])
		if !whole && g.logEnd+8+n == size {
			return nil
		}
		err, c := errors.New("its checksum is another one"), (*change)(nil)
		if whole {
			c, err = decode(body, tensors, g.tables[g.changed].width, g.Rows(g.changed))
		}
		if err != nil {
			return fmt.Errorf("%s was damaged at byte %d: %w: embed the files again to another folder", path, g.logEnd,
				err)
		}
		g.apply(c)
		g.logEnd += 8 + n
	}
	return nil
}

// tensors names those of a row that is put, in the order of the log.
func (g *Gallery) tensors() []string {
	if g.tables[imageFeatures] != nil {
		return []string{Image, imageFeatures}
	}
	return []string{g.changed}
}

// replaced says whether the folder has files of another generation than those that were opened.
func (g *Gallery) replaced() bool {
	m, err := ReadManifest(g.Path)
	return err == nil && m.Generation != g.generation
}
