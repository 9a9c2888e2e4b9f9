package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// ErrNone is wrapped by the error of Load where there is no checkpoint at all.
var ErrNone = errors.New("no checkpoint")

// Checkpoint is an open checkpoint. Close it after use.
type Checkpoint struct {
	Path   string // the step folder
	Step   int
	Metric *float64
	Notice string // what the user should know about how it was found; may be empty

	manifest manifest
	open     map[string]*safetensors.File
}

// Load opens the checkpoint at path: a step folder, a folder of checkpoints or a
// run folder. Of several it takes the one that latest names, or the newest
// complete one, with a notice, where latest is missing or damaged. A checkpoint that a
// newer program wrote is a *VersionError, and no older one is taken for it.
func Load(path string) (*Checkpoint, error) {
	dir, notice, err := find(path)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	return &Checkpoint{Path: dir, Step: m.Step, Metric: m.Metric, Notice: notice, manifest: m, open: map[string]*safetensors.File{}}, nil
}

// find resolves path to a step folder.
func find(path string) (dir, notice string, err error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", "", fmt.Errorf("checkpoint: %w at %s: there is no such folder", ErrNone, path)
	case err != nil:
		return "", "", fmt.Errorf("checkpoint: %w", err)
	case !st.IsDir():
		return "", "", fmt.Errorf("checkpoint: %s is a file: give the step folder or the run folder", path)
	case exists(filepath.Join(path, manifestName)):
		return path, "", nil
	}
	if sub := filepath.Join(path, "checkpoints"); exists(sub) {
		path = sub
	}
	step, latestErr := readLatest(path)
	if latestErr == nil {
		dir = filepath.Join(path, folderName(step))
		if _, latestErr = readManifest(dir); latestErr == nil {
			return dir, "", nil
		}
	}
	entries, unknown, err := scan(path)
	if err != nil {
		return "", "", err
	}
	// To go on from an older checkpoint would be to lose what a newer program did.
	if unknown != nil {
		return "", "", unknown
	}
	if len(entries) == 0 {
		return "", "", fmt.Errorf("checkpoint: %w in %s: no complete step folder there", ErrNone, path)
	}
	newest := entries[len(entries)-1]
	return newest.Path, fmt.Sprintf("%s of %s cannot be used (%v): taking the newest complete checkpoint, step %d", latestName, path, latestErr, newest.Step), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readLatest returns the step that latest in dir names.
func readLatest(dir string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, latestName))
	if err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	step, ok := parseFolderName(strings.TrimSpace(string(raw)))
	if !ok {
		return 0, fmt.Errorf("checkpoint: %s is damaged (got %.40q)", filepath.Join(dir, latestName), raw)
	}
	return step, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var err error
	for _, f := range c.open {
		err = errors.Join(err, f.Close())
	}
	clear(c.open)
	return err
}

// File returns the content of a further file.
func (c *Checkpoint) File(name string) ([]byte, error) {
	if _, ok := c.manifest.Files[name]; !ok {
		return nil, fmt.Errorf("checkpoint: %s holds no file %q", c.Path, name)
	}
	b, err := os.ReadFile(filepath.Join(c.Path, name))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return b, nil
}

// Has reports whether the checkpoint has the group name.
func (c *Checkpoint) Has(group string) bool {
	_, ok := c.manifest.Files[fileOf(group)]
	return ok
}

// Group returns the open file of the group name; the checkpoint closes it.
func (c *Checkpoint) Group(name string) (*safetensors.File, error) {
	if f := c.open[name]; f != nil {
		return f, nil
	}
	if !c.Has(name) {
		return nil, fmt.Errorf("checkpoint: %s holds no %s.safetensors: was that part switched off in the run that wrote it?", c.Path, name)
	}
	f, err := safetensors.Open(filepath.Join(c.Path, fileOf(name)))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	c.open[name] = f
	return f, nil
}

// ReadFloat32 reads the tensor name of group into dst. It must have the given shape.
func (c *Checkpoint) ReadFloat32(group, name string, shape []int, dst []float32) error {
	f, err := c.shaped(group, name, shape)
	if err != nil {
		return err
	}
	return f.ReadFloat32(name, dst)
}

// ReadInt64 reads the integer tensor name of group into dst. It must have the given shape.
func (c *Checkpoint) ReadInt64(group, name string, shape []int, dst []int64) error {
	f, err := c.shaped(group, name, shape)
	if err != nil {
		return err
	}
	return f.ReadInt64(name, dst)
}

func (c *Checkpoint) shaped(group, name string, shape []int) (*safetensors.File, error) {
	f, err := c.Group(group)
	if err != nil {
		return nil, err
	}
	info, ok := f.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("checkpoint: %s.safetensors of %s has no tensor %q", group, c.Path, name)
	}
	if !slices.Equal(info.Shape, shape) {
		return nil, fmt.Errorf("checkpoint: %s in %s.safetensors of %s has shape %v, want %v", name, group, c.Path, info.Shape, shape)
	}
	return f, nil
}
