package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

const (
	format       = 1 // version of state.json
	manifestName = "state.json"
	latestName   = "latest"
	stepPrefix   = "step-"
	tempPrefix   = ".tmp-" // being written or being removed
	oldPrefix    = ".old-" // replaced by a save of the same step
)

// manifest is the content of state.json.
type manifest struct {
	Format int              `json:"format"`
	Step   int              `json:"step"`
	Metric *float64         `json:"metric,omitempty"` // of the evaluation at this step; higher is better
	Files  map[string]int64 `json:"files"`            // sizes of the other files
	State  json.RawMessage  `json:"state,omitempty"`
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
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("checkpoint: %s is damaged: %w", filepath.Join(dir, manifestName), err)
	}
	if m.Format != format {
		return m, fmt.Errorf("checkpoint: %s: unknown format (got %d): this program reads format %d", dir, m.Format, format)
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

// Entry is one checkpoint of a folder.
type Entry struct {
	Step   int
	Path   string
	Metric *float64 // nil where no evaluation was recorded
}

// List returns the complete checkpoints of the folder dir by ascending step.
// Folders that are damaged or not complete are left out.
func List(dir string) ([]Entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var out []Entry
	for _, e := range names {
		step, ok := parseFolderName(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if m, err := readManifest(path); err == nil && m.Step == step {
			out = append(out, Entry{Step: step, Path: path, Metric: m.Metric})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Step < out[j].Step })
	return out, nil
}
