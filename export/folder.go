package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/internal/files"
)

// writeFolder writes files to the folder out and returns their names. The folder is made beside it and gets its name
// when all files are on the disk.
func writeFolder(out string, content map[string]fill) (names []string, err error) {
	if out == "" {
		return nil, errors.New("where to? --out names a folder")
	}
	out = filepath.Clean(out)
	if err := vacant(out); err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(out); err == nil { // a link to a folder stays one
		out = real
	}
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("%w: choose another folder with --out", err)
	}
	temp, err := os.MkdirTemp(parent, ".tmp-"+filepath.Base(out)+"-")
	if err != nil {
		return nil, fmt.Errorf("%w: choose another folder with --out", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) { // an empty folder, but not where one is or a disk is mounted
		return nil, fmt.Errorf("%w: choose a folder that is not there yet with --out", err)
	}
	names = slices.Sorted(maps.Keys(content))
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(temp, name)), 0o777); err != nil {
			return nil, err
		}
		if err := files.ReplaceFrom(filepath.Join(temp, name), content[name]); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return nil, err
	}
	return names, os.Rename(temp, out)
}

// vacant refuses a folder that has something in it.
func vacant(out string) error {
	list, err := os.ReadDir(out)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: choose another folder with --out", err)
	case len(list) > 0:
		return fmt.Errorf("%s is not empty (it has %s): choose another folder with --out", out, list[0].Name())
	}
	return nil
}

// object is an object of a JSON file.
type object = map[string]any

// json adds a file of JSON.
func (x *job) json(file string, v any) {
	x.files[file] = func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
}

// text adds a file of bytes.
func (x *job) text(file string, content []byte) {
	x.files[file] = func(w io.Writer) error { _, err := w.Write(content); return err }
}
