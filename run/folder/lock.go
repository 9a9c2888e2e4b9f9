package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train/runlog"
)

// Lock keeps other processes from writing to the folder dir until it is released or the process ends, however it
// does. say is told where the file system has no locks, see files.Lock; nil: nobody is.
func Lock(dir string, say func(format string, args ...any)) (*files.FolderLock, error) {
	l, err := files.Lock(dir, say)
	var held *files.HeldError
	switch {
	case err == nil:
		return l, nil
	case errors.As(err, &held) && held.Remote:
		return nil, fmt.Errorf("run.out: %w, or choose another folder with --out", err)
	case errors.As(err, &held):
		return nil, fmt.Errorf("run.out: %w: wait for it, or choose another folder with --out", err)
	}
	return nil, fmt.Errorf("run.out: %w", err)
}

// New has fill write a run folder that holds no run so far, while no other process does. One that cannot be finished
// is removed, unless it was there before. What a process left there that was killed before it had written a
// checkpoint is not a run.
func New(dir string, say func(format string, args ...any), fill func() error) (err error) {
	if err := Vacant(dir, say); err != nil {
		return err
	}
	_, before := os.Stat(dir)
	if err := Writable(dir); err != nil {
		return err
	}
	lock, err := Lock(dir, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := vacant(dir); err != nil { // another process was faster
		return err
	}
	if err = fill(); err == nil {
		return nil
	}
	if errors.Is(before, fs.ErrNotExist) {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(dir, runlog.CheckpointsDir)))
}

// Vacant is vacant, and takes away what a process left in a run that was killed when the run was whole: its owner
// file and temporary files.
func Vacant(dir string, say func(format string, args ...any)) error {
	refused := vacant(dir)
	if refused == nil || dir == "" {
		return refused
	}
	l, err := Lock(dir, say)
	if err != nil {
		return refused // who has it is at work
	}
	files.DropTemporaries(dir)
	files.DropTemporaries(filepath.Join(dir, runlog.CheckpointsDir))
	return errors.Join(refused, l.Release())
}

// vacant refuses a folder that is none for a new run.
func vacant(dir string) error {
	switch {
	case dir == "":
		return console.Argument("run.out: name the folder of the new run with --out")
	case holdsRun(dir):
		return console.Argument("run.out: %s holds a run already: choose another folder with --out", dir)
	}
	return nil
}

// holdsRun says whether a folder has anything of a run but what a killed save left.
func holdsRun(dir string) bool {
	for _, name := range []string{runlog.ConfigFile, runlog.MetricsFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	list, err := os.ReadDir(filepath.Join(dir, runlog.CheckpointsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), ".") {
			return true
		}
	}
	return false
}
