//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// errNoFlock is what a system without locks says.
var errNoFlock error = syscall.ENOLCK

func systemFlock(f *os.File) (got bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}

// rename gives an open file or folder another name while it is locked, and closes it.
func rename(f *os.File, from, to string) error {
	return errors.Join(os.Rename(from, to), f.Close())
}
