package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/geoalign/geoalign/internal/words"
)

// maxHeader is the largest header accepted, as in the reference implementation.
const maxHeader = 100 << 20

// ErrFormat is wrapped by every error about the contents of a file.
var ErrFormat = errors.New("not a valid safetensors file")

// Info describes one tensor.
type Info struct {
	Name  string
	DType DType
	Shape []int // empty for a scalar

	begin, end int64 // byte offsets into the data
}

// Len returns the number of elements.
func (i Info) Len() int {
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// Bytes returns the size of the data.
func (i Info) Bytes() int64 { return i.end - i.begin }

// longestReason is how many bytes are shown of what quotes a name or a shape.
const longestReason = 1000

// formatError reports a defect of a file.
func formatError(format string, args ...any) error {
	return fmt.Errorf("safetensors: %w: %s", ErrFormat, words.Cut(fmt.Sprintf(format, args...), longestReason))
}

// parseHeader reads the JSON header of a file with dataSize bytes of data and
// returns the tensors in the order of their data. The data must be covered
// exactly, without gap or overlap, so nothing can hide in a file.
func parseHeader(raw []byte, dataSize int64) ([]Info, map[string]string, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil, formatError("the header does not start with {")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, nil, formatError("header: %v", err)
	}
	var infos []Info
	meta := map[string]string{}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, nil, formatError("header: %v", err)
		}
		name, ok := tok.(string)
		if !ok {
			return nil, nil, formatError("header: a key is not a string (got %v)", tok)
		}
		if seen[name] {
			return nil, nil, formatError("duplicate key %q", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := dec.Decode(&meta); err != nil {
				return nil, nil, formatError("__metadata__ must map strings to strings: %v", err)
			}
			continue
		}
		info, err := parseInfo(dec, name)
		if err != nil {
			return nil, nil, err
		}
		infos = append(infos, info)
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, formatError("header: %v", err)
	}
	if rest := bytes.TrimRight(raw[dec.InputOffset():], " \t\r\n\x00"); len(rest) > 0 {
		return nil, nil, formatError("%d bytes follow the header's JSON", len(rest))
	}
	sort.SliceStable(infos, func(i, j int) bool {
		if infos[i].begin != infos[j].begin {
			return infos[i].begin < infos[j].begin
		}
		return infos[i].end < infos[j].end
	})
	var end int64
	for _, t := range infos {
		if t.begin != end {
			return nil, nil, formatError("tensor %q begins at byte %d of the data, want %d: gap or overlap", t.Name,
				t.begin, end)
		}
		end = t.end
	}
	if end != dataSize {
		return nil, nil, formatError("the tensors need %d bytes of data, the file has %d: truncated or not complete",
			end, dataSize)
	}
	return infos, meta, nil
}

// parseInfo reads the value of one tensor's key.
func parseInfo(dec *json.Decoder, name string) (Info, error) {
	var e struct {
		DType   DType   `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := dec.Decode(&e); err != nil {
		return Info{}, formatError("tensor %q: %v", name, err)
	}
	info := Info{Name: name, DType: e.DType, Shape: make([]int, len(e.Shape))}
	size := e.DType.size()
	if size == 0 {
		return Info{}, formatError("tensor %q: unknown dtype %q", name, e.DType)
	}
	if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] {
		return Info{}, formatError("tensor %q: bad data_offsets %v", name, e.Offsets)
	}
	info.begin, info.end = e.Offsets[0], e.Offsets[1]
	n, empty := size, false
	for i, d := range e.Shape {
		if d < 0 || d > math.MaxInt32 {
			return Info{}, formatError("tensor %q: bad shape %v", name, e.Shape)
		}
		info.Shape[i] = int(d)
		if d == 0 {
			empty = true
			continue
		}
		if n > math.MaxInt64/d {
			return Info{}, formatError("tensor %q: shape %v overflows", name, e.Shape)
		}
		n *= d
	}
	if empty {
		n = 0
	}
	if info.end-info.begin != n {
		return Info{}, formatError("tensor %q: %s %v needs %d bytes, data_offsets %v give %d", name, e.DType, e.Shape,
			n, e.Offsets, info.end-info.begin)
	}
	return info, nil
}
