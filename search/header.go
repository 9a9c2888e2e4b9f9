package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// version of the file. It grows when its contents mean something else.
// Version 1 knew its pool by some of the rows: such an index is built anew.
const version = 2

// bitsVersion is that of an index of bits, which earlier programs do not know.
const bitsVersion = 3

// ErrVersion is wrapped, with ErrFormat, by errors about the index of another version of this program.
var ErrVersion = errors.New("of another version")

// header is what the file says of the index, as JSON in the metadata of a safetensors file.
type header struct {
	Version     int     `json:"version"`
	Rows        int     `json:"rows"`
	Width       int     `json:"width"`
	Metric      Metric  `json:"metric"`
	Cells       int     `json:"cells"`
	Probes      int     `json:"probes"`  // cells that a search looks at
	K           int     `json:"k"`       // neighbours that recall was measured with
	Queries     int     `json:"queries"` // that it was measured with
	Curve       []Point `json:"curve"`   // by rising probes; Probes is among them
	Seed        uint64  `json:"seed"`
	Fingerprint string  `json:"fingerprint"`       // of all rows of the pool
	Codes       Codes   `json:"codes,omitempty"`   // of version 3 bits, else left out: bytes
	Rescore     int     `json:"rescore,omitempty"` // of bits: rows that are scored anew for each that is asked for
}

// maxRescore is the most rows of an index of bits that are scored anew for each that is asked for.
const maxRescore = 256

// bits says whether rows are coded by bits.
func (h *header) bits() bool { return h.Codes == Bits }

// keep returns how many rows are kept for k that are asked for, and scored anew.
func (h *header) keep(k int) int {
	if h.bits() {
		return min(max(k*h.Rescore, leastSlack), h.Rows)
	}
	return min(k+max(k, leastSlack), h.Rows)
}

// maxCurve is more points than a calibration measures.
const maxCurve = 64

// parseHeader reads and checks a header.
func parseHeader(text string) (header, error) {
	var v struct{ Version int }
	var h header
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return h, fmt.Errorf("its description cannot be read: %v", err)
	}
	if v.Version != version && v.Version != bitsVersion {
		return h, fmt.Errorf("%w: it has version %d of the format, and this program reads versions %d and %d", ErrVersion,
			v.Version, version, bitsVersion)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return h, fmt.Errorf("its description cannot be read: %v", err)
	}
	return h, h.check()
}

// check refuses numbers that no index has.
func (h *header) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("its description is damaged: "+format, args...)
	}
	switch {
	case h.Rows < 1 || h.Rows > math.MaxInt32 || h.Width < 1 || h.Width > maxWidth:
		return bad("%d rows of width %d", h.Rows, h.Width)
	case h.bits() != (h.Version == bitsVersion) || h.Codes != "" && !h.bits() || h.bits() != (h.Rescore != 0) ||
		h.Rescore < 0 || h.Rescore > maxRescore:
		return bad("codes %.20q of version %d, of which %d rows are scored anew", string(h.Codes), h.Version, h.Rescore)
	case h.Metric.Check() != nil:
		return bad("metric %q", string(h.Metric))
	case h.Cells < 1 || h.Cells > min(maxCells, h.Rows):
		return bad("%d cells of %d rows", h.Cells, h.Rows)
	case h.K < 1 || h.K > h.Rows || h.Queries < 1 || len(h.Curve) < 1 || len(h.Curve) > maxCurve:
		return bad("%d points of %d neighbours of %d queries", len(h.Curve), h.K, h.Queries)
	}
	found := false
	for i, p := range h.Curve {
		if p.Probes < 1 || p.Probes > h.Cells || i > 0 && p.Probes <= h.Curve[i-1].Probes ||
			!(p.Recall >= 0 && p.Recall <= 1) {
			return bad("recall %v of %d cells", p.Recall, p.Probes)
		}
		found = found || p.Probes == h.Probes
	}
	if !found {
		return bad("%d cells to look at, of which no recall was measured", h.Probes)
	}
	return nil
}
