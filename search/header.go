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
	Fingerprint string  `json:"fingerprint"` // of all rows of the pool
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
	if v.Version != version {
		return h, fmt.Errorf("%w: it has version %d of the format, and this program reads version %d", ErrVersion,
			v.Version, version)
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
