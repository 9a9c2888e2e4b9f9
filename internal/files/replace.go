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
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/process"
)

// Replace writes the file at path in one step: who reads it, also after a kill, sees the
// old content or the new, never a part. Of several who write it at once, in one process or more, the last one's stays.
// A signal that asks the process to end waits for it. The error names the path.
func Replace(path string, content []byte) error {
	return ReplaceFrom(path, func(w io.Writer) error { _, err := w.Write(content); return err })
}

// ReplaceFrom is Replace with what fill writes.
func ReplaceFrom(path string, fill func(w io.Writer) error) error {
	return Fill(path, func(f *os.File) error {
		b := bufio.NewWriterSize(f, replaceBytes)
		if err := fill(b); err != nil {
			return err
		}
		return b.Flush()
	})
}

// replaceBytes is how much is written at a time.
const replaceBytes = 256 << 10

// Fill is Replace with what fill writes to an empty file, for who knows its beginning last.
func Fill(path string, fill func(f *os.File) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// replace fills a file of another name in the same folder, which gets its name when all of it
// is on the disk.
func replace(path string, fill func(f *os.File) error) (err error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // a device would be replaced
		return errors.New("there is something that is not a regular file")
	}
	defer process.Hold()()
	f, err := Temporary(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // what failed first says why
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	for _, do := range []func() error{func() error { return fill(f) }, f.Sync,
		func() error { return rename(f, f.Name(), path) }} {
		if err = do(); err != nil {
			return err
		}
	}
	return nil
}

// Probe tries to write a file to a folder, which is gone afterwards.
func Probe(dir string) error {
	f, err := Temporary(filepath.Join(dir, "probe"))
	if err != nil {
		return err
	}
	err = os.Remove(f.Name())
	if cerr := f.Close(); err != nil { // of an open file not every system removes the name
		return errors.Join(cerr, os.Remove(f.Name()))
	}
	return nil
}

// Temporary returns an empty file in the folder of path that nobody else writes: that of a name which what a killed
// process left there has too, whose lock ended with it, or where another one has that in work a file of a name that is
// drawn. Of these, those that a killed process left are removed.
func Temporary(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	name := dir + tempPrefix + base
	if f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666); err == nil {
		if own(f) {
			if err := f.Truncate(0); err == nil {
				sweep(dir, filepath.Base(name))
				return f, nil
			}
		}
		f.Close()
	}
	for {
		f, err := os.OpenFile(fmt.Sprintf("%s-%08x", name, rand.Uint32()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			own(f) // or another one's sweep would take it for left over
			sweep(dir, filepath.Base(name))
		}
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// A temporary file that nobody has locked is left over when it is leftAfter old, for who has just made one and not
// locked it yet; where the file system has no locks that would tell, leftWithoutLocks.
const (
	leftAfter        = time.Minute
	leftWithoutLocks = time.Hour
)

// sweep removes the files with drawn names of Temporary that killed processes left. That one cannot be removed is no
// error of the caller's.
func sweep(dir, name string) {
	d, err := os.Open(filepath.Clean(dir + "."))
	if err != nil {
		return
	}
	defer d.Close()
	for {
		list, err := d.Readdirnames(1000)
		for _, n := range list {
			if drawn, ok := strings.CutPrefix(n, name+"-"); ok && len(drawn) == 8 &&
				strings.Trim(drawn, "0123456789abcdef") == "" {
				removeLeft(filepath.Join(dir, n))
			}
		}
		if err != nil {
			return
		}
	}
}

// removeLeft removes a temporary file that nobody writes any more.
func removeLeft(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	got, works := exclusive(f, path)
	age := leftAfter
	if !works {
		age = leftWithoutLocks
	}
	if st, err := f.Stat(); err == nil && (got || !works) && time.Since(st.ModTime()) > age && named(f, path) {
		_ = os.Remove(path)
	}
}

// DropTemporaries removes the temporary files in a folder that the caller has locked: killed processes left them.
func DropTemporaries(dir string) {
	list, _ := os.ReadDir(dir) // a folder that is not there has none
	for _, e := range list {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		if f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0); err == nil {
			if own(f) {
				_ = os.Remove(f.Name())
			}
			f.Close()
		}
	}
}
