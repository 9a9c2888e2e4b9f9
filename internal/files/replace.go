package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/process"
)

// Replace writes the file at path in one step: who reads it, also after a kill, sees the
// old content or the new, never a part. A signal that asks the process to end waits for it.
// The error names the path.
func Replace(path string, content []byte) error {
	return ReplaceFrom(path, func(w io.Writer) error { _, err := w.Write(content); return err })
}

// ReplaceFrom is Replace with what fill writes.
func ReplaceFrom(path string, fill func(w io.Writer) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// replaceBytes is how much is written at a time.
const replaceBytes = 256 << 10

// replace fills a file of another name in the same folder, which gets its name when all of it
// is on the disk.
func replace(path string, fill func(w io.Writer) error) (err error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // a device would be replaced
		return errors.New("there is something that is no regular file")
	}
	defer process.Hold()()
	f, err := create(path)
	if err != nil {
		return err
	}
	temp := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	b := bufio.NewWriterSize(f, replaceBytes)
	for _, do := range []func() error{func() error { return fill(b) }, b.Flush, f.Sync} {
		if err = do(); err != nil {
			f.Close() // what failed first says why
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// create makes a file in the folder of path of a name that no other has, as others may replace path at the same time.
func create(path string) (*os.File, error) {
	for {
		name := fmt.Sprintf(".tmp-%08x-%s", rand.Uint32(), filepath.Base(path))
		f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
