package usercache

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/geoalign/geoalign/internal/files"
)

// lockWait is how long Lock waits for others, which need some milliseconds.
const lockWait = time.Second

// Lock has other processes that call it for a file of the same folder wait until release is called, so that who reads a
// file, adds to it and writes it loses nothing that another one adds meanwhile. Where the lock is not to be had in time
// it does without.
func Lock(file string) (release func()) {
	none := func() {}
	dir := filepath.Dir(file)
	if file == "" || os.MkdirAll(dir, 0o755) != nil {
		return none
	}
	for begin := time.Now(); time.Since(begin) < lockWait; time.Sleep(2 * time.Millisecond) {
		l, err := files.Lock(dir, nil)
		var held *files.HeldError
		switch {
		case err == nil:
			return func() { _ = l.Release() } // the end of the process does too
		case !errors.As(err, &held):
			return none
		}
	}
	return none
}
