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
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// writeFolder writes files to the folder out and returns their names. The folder is made beside it and gets its name
// when all files are on the disk, and is removed by the next export where a process was killed meanwhile. say is told
// notes.
func writeFolder(out string, content map[string]fill, say func(format string, args ...any)) (names []string,
	err error) {
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
	// an empty folder, but not where one is or a disk is mounted
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: choose a folder that is not there yet with --out", err)
	}
	names = slices.Sorted(maps.Keys(content))
	err = files.FillFolder(out, func(format string, args ...any) { say(strings.TrimPrefix(format, "note: "), args...) },
		func(dir string) error {
			for _, name := range names {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
					return err
				}
				if err := files.ReplaceFrom(filepath.Join(dir, name), content[name]); err != nil {
					return err
				}
			}
			return nil
		})
	var held *files.HeldError
	switch {
	case err == nil:
		return names, nil
	case errors.As(err, &held):
		return nil, fmt.Errorf("%w: wait for it, or choose another folder with --out", err)
	}
	return nil, fmt.Errorf("%w: choose another folder with --out", err)
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
