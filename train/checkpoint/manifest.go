package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/identity"
)

const (
	version      = 3 // of state.json, see older.go for the ones before
	manifestName = "state.json"
	latestName   = LatestFile
	stepPrefix   = "step-"
	tempPrefix   = ".tmp-" // being written or being removed
	oldPrefix    = ".old-" // replaced by a save of the same step
	nextName     = tempPrefix + latestName
)

// LatestFile is the file in a folder of checkpoints that names the newest.
const LatestFile = "latest"

// manifest is the content of state.json.
type manifest struct {
	Version int `json:"version"`
	// of this text, see identity.Seal; before the names that a run chooses
	Checksum string               `json:"checksum"`
	Step     int                  `json:"step"`
	Metric   *float64             `json:"metric,omitempty"`      // of the evaluation at this step; higher is better
	Measured string               `json:"metric_name,omitempty"` // what Metric is, by its name in the log
	BestBy   string               `json:"metric_by,omitempty"`   // the rule that chose Metric
	Files    map[string]fileInfo  `json:"files"`                 // the other files
	Parts    map[string]partState `json:"parts"`

	read int  // version of the text, which may be an older one
	old  bool // translated: counters that were added later are missing
}

// setMetric records a metric that a rule chose; a number that is not finite is none.
func (m *manifest) setMetric(x *Metric, by string) {
	m.Metric, m.Measured, m.BestBy = nil, "", ""
	if x != nil && finite(&x.Value) != nil {
		m.Metric, m.Measured, m.BestBy = &x.Value, x.Name, by
	}
}

// metric is the inverse of setMetric.
func (m *manifest) metric() *Metric {
	if m.Metric == nil {
		return nil
	}
	return &Metric{m.Measured, *m.Metric}
}

// fileInfo is what state.json says of a file.
type fileInfo struct {
	Bytes int64  `json:"bytes"`
	Sum   string `json:"crc32c"` // empty in folders of versions 1 and 2
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
	c, err := openStep(dir, noFile)
	if err != nil {
		return manifest{}, err
	}
	return c.manifest, c.Close()
}

// parseManifest reads the text of the state.json in dir, of this version or of an older one.
func parseManifest(dir string, raw []byte) (manifest, error) {
	m, err := parseText(dir, raw)
	if err == nil {
		err = m.check(dir)
	}
	var unknown *VersionError
	if err != nil && !errors.As(err, &unknown) {
		err = fmt.Errorf("checkpoint: %s is damaged: %w", filepath.Join(dir, manifestName), err)
	}
	return m, err
}

// parseText is parseManifest without what all versions have in common.
func parseText(dir string, raw []byte) (m manifest, err error) {
	var head struct{ Version, Format *int } // version 1 calls it format
	if err := decodeJSON(raw, &struct {
		Version **int `json:"version"`
		Format  **int `json:"format"`
	}{&head.Version, &head.Format}); err != nil {
		return m, err
	}
	got := 0
	switch {
	case head.Version != nil:
		got = *head.Version
	case head.Format != nil:
		got = *head.Format
	default:
		return m, errors.New("version is missing")
	}
	if got > 2 {
		if err := identity.CheckSeal(raw); err != nil {
			return m, err
		}
	}
	switch got {
	case version:
		err = decodeJSON(raw, &m)
	case 2:
		m, err = parseVersion2(raw)
	case 1:
		m, err = parseVersion1(raw)
	default:
		return m, &VersionError{Path: dir, Got: got, Reads: version}
	}
	m.read = got
	return m, err
}

// decodeJSON decodes text into the struct at v, with errors in words of the format.
func decodeJSON(text []byte, v any) error {
	if err := checkJSON(text, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	return nil
}

// check says what is missing or cannot be.
func (m manifest) check(dir string) error {
	named, ok := parseFolderName(filepath.Base(dir))
	switch {
	case m.Step < 0:
		return fmt.Errorf("step is %d, want 0 or more", m.Step)
	case ok && named != m.Step: // a copy under another name is fine
		return fmt.Errorf("step is %d, want %d as the folder says", m.Step, named)
	case m.Files == nil:
		return errors.New("files are missing")
	case m.Parts == nil:
		return errors.New("parts are missing")
	}
	for name, f := range m.Files {
		if name != filepath.Base(name) || name == manifestName || f.Bytes < 0 {
			return fmt.Errorf("file %q of %d bytes: the name is not that of another file in the folder, or the size is below 0", name, f.Bytes)
		}
		if m.read == version && len(f.Sum) != len(identity.SealZero) {
			return fmt.Errorf("file %q has no checksum", name)
		}
	}
	return nil
}

// Entry is one checkpoint of a folder.
type Entry struct {
	Step   int
	Path   string
	Metric *float64 // nil where no evaluation was recorded
	BestBy string   // the rule that chose it; empty in checkpoints of earlier versions
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
			out = append(out, Entry{Step: step, Path: path, Metric: m.Metric, BestBy: m.BestBy})
		}
		errors.As(err, &unknown) // by ascending step
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Step < out[j].Step })
	return out, unknown, nil
}
