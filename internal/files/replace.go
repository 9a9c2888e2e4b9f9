package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/geoalign/geoalign/internal/process"
)

// Replace writes the file at path in one step: who reads it, also after a kill, sees the
// old content or the new, never a part. Of several who write it at once, in one process or more, the last one's stays. A
// signal that asks the process to end waits for it. The error names the path.
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
	f, err := create(filepath.Join(filepath.Dir(path), ".tmp-"+filepath.Base(path)))
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

// A file that is being written has one of so many names. One that was not written to for so long is of a process that was killed.
const (
	writers   = 16
	abandoned = time.Hour
)

// create creates a file of a name, or where others write one of that name of the name with a number.
func create(name string) (*os.File, error) {
	for n := range writers {
		own := name
		if n > 0 {
			own = fmt.Sprintf("%s.%d", name, n)
		}
		f, err := os.OpenFile(own, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		if st, err := os.Lstat(own); err == nil && st.Mode().IsRegular() && time.Since(st.ModTime()) > abandoned && os.Remove(own) == nil {
			return create(name)
		}
	}
	return nil, fmt.Errorf("%d others write it: remove %s* if they do not", writers, name)
}
