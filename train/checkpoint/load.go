package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// ErrNone is wrapped by the error of Load where there is no checkpoint at all.
var ErrNone = errors.New("no checkpoint")

// Checkpoint is an open checkpoint. Close it after use.
type Checkpoint struct {
	Path   string // the step folder
	Step   int
	Metric *Metric // nil where no evaluation was recorded
	Notice string  // what the user should know about how it was found; may be empty

	manifest manifest
	files    map[string]*os.File // all that state.json names
	checked  map[string]bool     // files that were compared with their checksums
	open     map[string]*safetensors.File
}

// Sum identifies the content: the checksum of state.json, which holds those of all files. It is empty of earlier
// versions.
func (c *Checkpoint) Sum() string { return c.manifest.Checksum }

// GroupSum is the checksum of the file of a group, empty where there is none and of earlier versions.
func (c *Checkpoint) GroupSum(group string) string { return c.manifest.Files[group+extension].Sum }

// Load opens the checkpoint at path, a step folder, a folder of checkpoints or a run
// folder, and checks all of its files. Of several it takes the one that latest names. Where
// that is missing or damaged it takes the one before, with a notice. A checkpoint that a
// newer program wrote is a *VersionError, and no older one is taken for it.
//
// A run may save, replace and prune checkpoints there meanwhile: the checkpoint is whole, and
// stays so until it is closed.
func Load(path string) (*Checkpoint, error) { return openAt(path, everyFile) }

// Open is Load for a caller that reads the tensors of groups alone, such as model, or of
// none: damage in other files of tensors is found when they are used, by their sizes at once.
func Open(path string, groups ...string) (*Checkpoint, error) {
	return openAt(path, func(name string) bool {
		group, tensors := strings.CutSuffix(name, extension)
		return !tensors || slices.Contains(groups, group)
	})
}

func everyFile(string) bool { return true }
func noFile(string) bool    { return false }

// tries is how often files that are missing are looked for. A run in progress takes folders
// away between the reading of latest and the opening of what it names, and has none of a
// step for the moment in which that is replaced.
const tries = 10

// openAt opens the checkpoint at path and checks the files that use names.
func openAt(path string, use func(name string) bool) (*Checkpoint, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("checkpoint: %w at %s: there is no such folder", ErrNone, path)
	case err != nil:
		return nil, fmt.Errorf("checkpoint: %w", err)
	case !st.IsDir():
		return nil, fmt.Errorf("checkpoint: %s is a file: give the step folder or the run folder", path)
	case exists(filepath.Join(path, manifestName)):
		return openStep(path, use)
	}
	if _, ok := parseFolderName(filepath.Base(path)); ok && !exists(filepath.Join(path, "checkpoints")) {
		return nil, fmt.Errorf("checkpoint: %s is damaged: it has no %s", path, manifestName)
	}
	if sub := filepath.Join(path, "checkpoints"); exists(sub) {
		path = sub
	}
	for try := 1; ; try++ {
		c, moved, err := newest(path, use)
		if !moved || try == tries {
			return c, err
		}
		if c != nil {
			c.Close()
		}
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
}

// newest opens the newest checkpoint of a folder of checkpoints that can be used. moved says
// that files were missing, as they are where a run saves and prunes: try again.
func newest(path string, use func(name string) bool) (c *Checkpoint, moved bool, err error) {
	latest, why := readLatest(path)
	named := why == nil
	if named {
		if c, why = openStep(filepath.Join(path, folderName(latest)), use); why == nil {
			return c, false, nil
		}
	}
	var unknown *VersionError
	if errors.As(why, &unknown) {
		return nil, false, why
	}
	moved = errors.Is(why, fs.ErrNotExist)
	steps, err := stepFolders(path)
	if err != nil {
		return nil, moved, err
	}
	// The one before is a step below; what is above it was left by a run that went back.
	slices.SortFunc(steps, func(a, b int) int {
		if named && (a > latest) != (b > latest) {
			return cmp.Compare(a, b)
		}
		return cmp.Compare(b, a)
	})
	said := named
	for _, step := range steps {
		if named && step == latest {
			continue
		}
		c, err := openStep(filepath.Join(path, folderName(step)), use)
		if err == nil {
			c.Notice = fmt.Sprintf("%s of %s cannot be used (%v): taking the newest complete checkpoint before it, step %d", latestName, path, why, step)
			return c, moved, nil
		}
		// To go on from an older checkpoint would be to lose what a newer program did.
		if errors.As(err, &unknown) {
			return nil, false, err
		}
		moved = moved || errors.Is(err, fs.ErrNotExist)
		if !said { // the damage says more than that latest is missing
			why, said = err, true
		}
	}
	if len(steps) == 0 {
		return nil, moved, fmt.Errorf("checkpoint: %w in %s: no complete step folder there", ErrNone, path)
	}
	return nil, moved, fmt.Errorf("%w: no other checkpoint in %s can be used: put back a copy, or choose another run or folder", why, path)
}

// stepFolders lists the steps of the folders of checkpoints in dir, ascending.
func stepFolders(dir string) (steps []int, err error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	for _, e := range names {
		if step, ok := parseFolderName(e.Name()); ok && e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readLatest returns the step that latest in dir names, or the one that it was about to name
// when a save was killed.
func readLatest(dir string) (int, error) {
	if step, published := readNext(dir); published {
		return step, nil
	}
	return readName(filepath.Join(dir, latestName))
}

// readNext returns the step of a save that has all but moved latest: the folder has its name,
// and the one that it was written under is gone.
func readNext(dir string) (step int, published bool) {
	step, err := readName(filepath.Join(dir, nextName))
	name := folderName(step)
	return step, err == nil && !exists(filepath.Join(dir, tempPrefix+name)) && exists(filepath.Join(dir, name))
}

// readName reads a file with the name of a step folder and its checksum, which earlier
// versions did not write.
func readName(path string) (step int, err error) {
	raw, err := files.Read(path, files.MaxRecord)
	if err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	name, sum, summed := strings.Cut(strings.TrimSuffix(string(raw), "\n"), "\n")
	if !summed {
		name = strings.TrimSpace(name)
	}
	step, ok := parseFolderName(name)
	if !ok || summed && sum != nameSum(name) {
		return 0, fmt.Errorf("checkpoint: %s is damaged (got %.40q)", path, raw)
	}
	return step, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	clear(c.files)
	clear(c.open)
	return err
}

// file returns an open file that was compared with its checksum.
func (c *Checkpoint) file(name string) (*os.File, error) {
	f := c.files[name]
	if f == nil {
		return nil, fmt.Errorf("checkpoint: %s of %s is closed", name, c.Path)
	}
	if !c.checked[name] {
		if err := c.sum(name); err != nil {
			return nil, err
		}
		c.checked[name] = true
	}
	return f, nil
}

// File returns the content of a further file.
func (c *Checkpoint) File(name string) ([]byte, error) {
	info, ok := c.manifest.Files[name]
	if !ok {
		return nil, fmt.Errorf("checkpoint: %s holds no file %q", c.Path, name)
	}
	f, err := c.file(name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Bytes)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return b, nil
}

// Has reports whether the checkpoint has the group name.
func (c *Checkpoint) Has(group string) bool {
	_, ok := c.manifest.Files[fileOf(group)]
	return ok
}

// HasFile reports whether the checkpoint has the further file name.
func (c *Checkpoint) HasFile(name string) bool {
	_, ok := c.manifest.Files[name]
	return ok
}

// Groups lists the groups of tensors, sorted.
func (c *Checkpoint) Groups() (names []string) {
	for name := range c.manifest.Files {
		if group, ok := strings.CutSuffix(name, extension); ok {
			names = append(names, group)
		}
	}
	slices.Sort(names)
	return names
}

// Tensors lists the tensors of the group name. Nothing but the head of the file is read, which
// is not compared with the checksum.
func (c *Checkpoint) Tensors(name string) ([]safetensors.Info, error) {
	if f := c.open[name]; f != nil {
		return f.Tensors(), nil
	}
	f, err := c.header(name)
	if err != nil {
		return nil, err
	}
	return f.Tensors(), nil
}

// Group returns the open file of the group name; the checkpoint closes it.
func (c *Checkpoint) Group(name string) (*safetensors.File, error) {
	if f := c.open[name]; f != nil {
		return f, nil
	}
	if c.Has(name) {
		if _, err := c.file(fileOf(name)); err != nil {
			return nil, err
		}
	}
	f, err := c.header(name)
	if err == nil {
		c.open[name] = f
	}
	return f, err
}

// header reads the head of the file of a group.
func (c *Checkpoint) header(name string) (*safetensors.File, error) {
	if !c.Has(name) {
		return nil, fmt.Errorf("checkpoint: %s holds no %s.safetensors: was that part switched off in the run that wrote it?", c.Path, name)
	}
	f, err := safetensors.NewReader(c.files[fileOf(name)], c.manifest.Files[fileOf(name)].Bytes)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", filepath.Join(c.Path, fileOf(name)), err)
	}
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
		return nil, fmt.Errorf("checkpoint: %s in %s.safetensors of %s has shape %v, want %v", name, group, c.Path,
			info.Shape, shape)
	}
	return f, nil
}
