//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// Lock takes the lock of a folder until release is called or the process ends, however it does. held says that another one has it,
// of this process or not: release is nil then. File systems without locks are taken as they are.
func Lock(dir string) (release func() error, held bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, true, f.Close()
	}
	return f.Close, false, nil
}
