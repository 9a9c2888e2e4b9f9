package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

const (
	version      = 2 // of state.json, see version1.go for the one before
	manifestName = "state.json"
	latestName   = "latest"
	stepPrefix   = "step-"
	tempPrefix   = ".tmp-" // being written or being removed
	oldPrefix    = ".old-" // replaced by a save of the same step
)

// manifest is the content of state.json.
type manifest struct {
	Version int                  `json:"version"`
	Step    int                  `json:"step"`
	Metric  *float64             `json:"metric,omitempty"` // of the evaluation at this step; higher is better
	Files   map[string]int64     `json:"files"`            // sizes of the other files
	Parts   map[string]partState `json:"parts"`

	old bool // translated: counters that were added later are missing
}

// partState is what state.json says of a part.
type partState struct {
	Version  int             `json:"version"`
	Counters json.RawMessage `json:"counters,omitempty"`
}

// VersionError reports a checkpoint that another version of this program wrote, which
// this one cannot read. The folder is left as it is.
type VersionError struct {
	Path string // the step folder
	Part string // whose layout it is; empty: that of state.json
	// Got is the version in the folder and Reads the one that this program knows.
	Got, Reads int
}

// Error names both versions and what to do.
func (e *VersionError) Error() string {
	what, cure := manifestName, "use the geoalign that wrote it or a newer one"
	if e.Part != "" {
		what = fmt.Sprintf("part %q", e.Part)
	}
	if e.Got < e.Reads {
		cure = "use the geoalign that wrote it"
	}
	return fmt.Sprintf("checkpoint: %s: %s has version %d, this program reads version %d: %s, or another checkpoint; nothing was changed there", e.Path, what, e.Got, e.Reads, cure)
}

// folderName returns the name of the folder of step.
func folderName(step int) string { return fmt.Sprintf("%s%08d", stepPrefix, step) }

// parseFolderName is the inverse of folderName.
func parseFolderName(name string) (step int, ok bool) {
	digits, ok := strings.CutPrefix(name, stepPrefix)
	if !ok {
		return 0, false
	}
	step, err := strconv.Atoi(digits)
	return step, err == nil && step >= 0 && folderName(step) == name
}

// readManifest reads state.json of the step folder dir and checks that the files
// it names are there in full length.
func readManifest(dir string) (manifest, error) {
	var m manifest
	raw, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return m, fmt.Errorf("checkpoint: %w", err)
	}
	if m, err = parseManifest(dir, raw); err != nil {
		return m, err
	}
	for name, size := range m.Files {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return m, fmt.Errorf("checkpoint: %s is not complete: %w", dir, err)
		}
		if st.Size() != size {
			return m, fmt.Errorf("checkpoint: %s is damaged: %s has %d bytes, want %d", dir, name, st.Size(), size)
		}
	}
	return m, nil
}

// parseManifest reads the text of the state.json in dir, of this version or of an older one.
func parseManifest(dir string, raw []byte) (m manifest, err error) {
	var head struct{ Version, Format int }
	if err := json.Unmarshal(raw, &head); err != nil {
		return m, fmt.Errorf("checkpoint: %s is damaged: %w", filepath.Join(dir, manifestName), err)
	}
	switch got := max(head.Version, head.Format); got { // version 1 calls it format
	case version:
		err = json.Unmarshal(raw, &m)
	case 1:
		m, err = parseVersion1(raw)
	default:
		return m, &VersionError{Path: dir, Got: got, Reads: version}
	}
	if err != nil {
		return m, fmt.Errorf("checkpoint: %s is damaged: %w", filepath.Join(dir, manifestName), err)
	}
	return m, nil
}

// Entry is one checkpoint of a folder.
type Entry struct {
	Step   int
	Path   string
	Metric *float64 // nil where no evaluation was recorded
}

// List returns the complete checkpoints of the folder dir by ascending step.
// Folders that are damaged, not complete or of another version are left out.
func List(dir string) ([]Entry, error) {
	list, _, err := scan(dir)
	return list, err
}

// scan is List with the newest folder of another version, which may be nil.
func scan(dir string) (out []Entry, unknown *VersionError, err error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: %w", err)
	}
	for _, e := range names {
		step, ok := parseFolderName(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		m, err := readManifest(path)
		if err == nil && m.Step == step {
			out = append(out, Entry{Step: step, Path: path, Metric: m.Metric})
		}
		errors.As(err, &unknown) // by ascending step
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Step < out[j].Step })
	return out, unknown, nil
}
