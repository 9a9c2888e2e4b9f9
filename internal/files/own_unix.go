//go:build unix

package files

import (
	"os"
	"syscall"
)

// own locks a file until it is closed, and says whether it did and the file still has its name: another one may have renamed it in between.
func own(f *os.File) bool {
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	if err != nil {
		return false
	}
	st, err := f.Stat()
	return err == nil && os.SameFile(there, st)
}

// rename gives an open file its name while it is locked, and closes it.
func rename(f *os.File, path string) error {
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return f.Close()
}
