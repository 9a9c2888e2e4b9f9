//go:build unix

package run

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock keeps other processes from training into the folder dir until unlock
// is called or the process ends, however it does. File systems without locks are
// taken as they are.
func Lock(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("run.out: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("run.out: another process is training into %s: wait for it, or choose another folder with --out", dir), f.Close())
	}
	return f.Close, nil
}
