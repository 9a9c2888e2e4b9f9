package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempPrefix begins the names of files and folders in work.
const tempPrefix = ".tmp-"

// FillFolder writes the folder at path, which is not there, in one step: fill writes to a folder beside it, which gets
// its name when all is there. What killed processes left beside it, of this folder or of others, is removed first.
// Where another process writes the same folder that is a *HeldError. say is that of Lock.
func FillFolder(path string, say func(format string, args ...any), fill func(dir string) error) error {
	parent, base := filepath.Split(filepath.Clean(path))
	sweepFolders(parent)
	temp := parent + tempPrefix + base
	l, err := lockEmpty(temp, say)
	if err != nil {
		return err
	}
	if err := fill(temp); err != nil {
		return errors.Join(err, drop(l))
	}
	if err := l.Publish(path); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return nil
}

// lockEmpty makes a folder, locks it and empties it of what a killed process left.
func lockEmpty(dir string, say func(format string, args ...any)) (*FolderLock, error) {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if _, ours, _, _ := readOwner(filepath.Join(dir, OwnerFile)); len(list) > 0 && !ours && !justBegun(dir) {
		return nil, fmt.Errorf("%s has something in it that this program did not leave there: remove it or give it another name", dir)
	}
	l, err := Lock(dir, say)
	if err != nil {
		return nil, err
	}
	if err := empty(dir); err != nil {
		return nil, errors.Join(err, l.Release())
	}
	return l, nil
}

// justBegun says that a folder has an empty owner file and nothing else: its process was killed before it could write
// to it.
func justBegun(dir string) bool {
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != OwnerFile {
		return false
	}
	st, err := list[0].Info()
	return err == nil && st.Mode().IsRegular() && st.Size() == 0
}

// empty removes what is in a locked folder, but for its owner file.
func empty(dir string) error {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if e.Name() != OwnerFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// drop removes a locked folder. The owner file goes last: without it nobody would know that the rest is left over.
func drop(l *FolderLock) error {
	if err := empty(l.dir); err != nil {
		return errors.Join(err, l.Release())
	}
	return errors.Join(l.Release(), os.Remove(l.dir))
}

// sweepFolders removes the folders in work below parent whose processes have ended: those with an owner file. One that
// cannot be removed is no error of the caller's.
func sweepFolders(parent string) {
	d, err := os.Open(filepath.Clean(parent + "."))
	if err != nil {
		return
	}
	defer d.Close()
	for {
		list, err := d.Readdirnames(1000)
		for _, name := range list {
			dir := filepath.Join(parent, name)
			if !strings.HasPrefix(name, tempPrefix) {
				continue
			}
			if st, err := os.Lstat(dir); err != nil || !st.IsDir() {
				continue
			}
			if _, ours, _, err := readOwner(filepath.Join(dir, OwnerFile)); err != nil || !ours && !justBegun(dir) {
				continue
			}
			if l, err := Lock(dir, nil); err == nil {
				_ = drop(l)
			}
		}
		if err != nil {
			return
		}
	}
}
