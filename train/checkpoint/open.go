package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// openStep opens all files of the step folder dir, so that they stay as they are whatever
// becomes of the folder, compares their sizes, and the checksums of those that use names.
func openStep(dir string, use func(name string) bool) (c *Checkpoint, err error) {
	root, err := os.OpenRoot(dir) // what is opened below it is of one folder, renamed or not
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer root.Close()
	raw, err := readIn(root, manifestName)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s is not complete: %w", dir, err)
	}
	m, err := parseManifest(dir, raw)
	if err != nil {
		return nil, err
	}
	c = &Checkpoint{Path: dir, Step: m.Step, Metric: m.metric(), manifest: m, files: map[string]*os.File{},
		checked: map[string]bool{}, open: map[string]*safetensors.File{}}
	defer func() {
		if err != nil {
			c.Close()
			c = nil
		}
	}()
	names := slices.Sorted(maps.Keys(m.Files))
	for _, name := range names {
		f, err := openIn(root, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a link to elsewhere
			f, _, err = files.Open(filepath.Join(dir, name), 0)
		}
		if err != nil {
			return c, fmt.Errorf("checkpoint: %s is not complete: %w", dir, err)
		}
		c.files[name] = f
		st, err := f.Stat()
		if err != nil {
			return c, fmt.Errorf("checkpoint: %s is not complete: %w", dir, err)
		}
		if want := m.Files[name].Bytes; st.Size() != want {
			return c, fmt.Errorf("checkpoint: %s is damaged: %s has %d bytes, want %d", dir, name, st.Size(), want)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !use(name) })
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = c.sum(name) })
	}
	all.Wait()
	for i, name := range names {
		c.checked[name] = true
		if errs[i] != nil {
			return c, errs[i]
		}
	}
	return c, nil
}

// openIn opens a file of a folder; what is not a file is not opened, since to open a pipe waits for its writer.
func openIn(root *os.Root, name string) (*os.File, error) {
	if st, err := root.Stat(name); err == nil && !st.Mode().IsRegular() {
		return nil, &files.KindError{Path: filepath.Join(root.Name(), name), Mode: st.Mode()}
	}
	return root.Open(name)
}

// readIn reads a record of a folder.
func readIn(root *os.Root, name string) ([]byte, error) {
	f, err := openIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return files.Rest(f, 0, files.MaxRecord)
}

// sum compares a file with its checksum. Folders that were written before there were any
// have none.
func (c *Checkpoint) sum(name string) error {
	info := c.manifest.Files[name]
	if info.Sum == "" {
		return nil
	}
	got, err := sumFile(c.files[name], info.Bytes)
	if err != nil {
		return fmt.Errorf("checkpoint: %s is damaged: read %s: %w", c.Path, name, err)
	}
	if got != info.Sum {
		return fmt.Errorf("checkpoint: %s is damaged: %s has checksum %s, want %s: its bytes were changed after it was saved", c.Path, name, got, info.Sum)
	}
	return nil
}

// FileCheck is what Verify found of a file of a checkpoint.
type FileCheck struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Sum     string `json:"crc32c,omitempty"` // that it should have; empty: written before there were any
	Problem string `json:"problem,omitempty"`
}

// Verified is what Verify found of a checkpoint.
type Verified struct {
	Path    string      `json:"path"`              // the step folder
	Problem string      `json:"problem,omitempty"` // the first, or why it cannot be opened
	Files   []FileCheck `json:"files"`             // all, where state.json can be read
}

// Verify reads every byte of the checkpoint at path, or where path is a folder of checkpoints
// or a run folder of all that are there, by ascending step. Damage is part of the result
// and no error.
func Verify(path string) ([]Verified, error) {
	if IsStep(path) {
		v, _ := verifyStep(path)
		return []Verified{v}, nil
	}
	if sub := filepath.Join(path, "checkpoints"); exists(sub) {
		path = sub
	}
	for {
		steps, err := stepFolders(path)
		if err != nil {
			return nil, err
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("checkpoint: %w in %s: no step folder there", ErrNone, path)
		}
		var out []Verified
		for _, step := range steps {
			dir := filepath.Join(path, folderName(step))
			v, err := verifyStep(dir)
			// it may have been replaced
			for try := 1; errors.Is(err, fs.ErrNotExist) && exists(dir) && try < tries; try++ {
				time.Sleep(time.Duration(try) * time.Millisecond)
				v, err = verifyStep(dir)
			}
			if err == nil || exists(dir) {
				out = append(out, v)
			}
		}
		if out != nil { // else a run in progress has removed them all: there are others now
			return out, nil
		}
	}
}

// CheckLatest compares the file latest of a folder of checkpoints with its checksum, which earlier versions did not
// write: summed says whether there is one. It wraps fs.ErrNotExist where there is no such file.
func CheckLatest(dir string) (summed bool, err error) {
	path := filepath.Join(dir, latestName)
	if _, err := readName(path); err != nil {
		return true, err
	}
	raw, err := files.Read(path, files.MaxRecord)
	return bytes.Count(raw, []byte("\n")) > 1, err
}

// IsStep reports whether path is the folder of one step.
func IsStep(path string) bool {
	_, named := parseFolderName(filepath.Base(path))
	return named || exists(filepath.Join(path, manifestName))
}

// verifyStep checks one step folder; err is what Problem says.
func verifyStep(dir string) (v Verified, err error) {
	v = Verified{Path: dir, Files: []FileCheck{}}
	fail := func(err error) (Verified, error) {
		v.Problem = strings.TrimPrefix(err.Error(), "checkpoint: ")
		return v, err
	}
	c, err := openStep(dir, everyFile)
	if err == nil {
		defer c.Close()
		v.Files = c.list()
		return v, nil
	}
	raw, rerr := files.Read(filepath.Join(dir, manifestName), files.MaxRecord)
	if rerr != nil {
		return fail(err)
	}
	m, merr := parseManifest(dir, raw)
	if merr != nil {
		return fail(err)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		f := FileCheck{Name: name, Bytes: m.Files[name].Bytes, Sum: m.Files[name].Sum}
		if ferr := verifyFile(filepath.Join(dir, name), f); ferr != nil {
			f.Problem = ferr.Error()
		}
		v.Files = append(v.Files, f)
	}
	return fail(err)
}

// verifyFile says what is wrong with one file.
func verifyFile(path string, want FileCheck) error {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() != want.Bytes {
		return fmt.Errorf("has %d bytes", st.Size())
	}
	got, err := sumFile(f, want.Bytes)
	if err == nil && want.Sum != "" && got != want.Sum {
		err = fmt.Errorf("has checksum %s", got)
	}
	return err
}

// list describes the files of an open checkpoint.
func (c *Checkpoint) list() (out []FileCheck) {
	for _, name := range slices.Sorted(maps.Keys(c.manifest.Files)) {
		out = append(out, FileCheck{Name: name, Bytes: c.manifest.Files[name].Bytes, Sum: c.manifest.Files[name].Sum})
	}
	return out
}
