package run

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/internal/files"
)

// Lock keeps other processes from training into the folder dir until unlock
// is called or the process ends, however it does. File systems without locks are
// taken as they are.
func Lock(dir string) (unlock func() error, err error) {
	unlock, held, err := files.Lock(dir)
	if held {
		return nil, errors.Join(fmt.Errorf("run.out: another process is training into %s: wait for it, or choose another folder with --out", dir), err)
	}
	if err != nil {
		return nil, fmt.Errorf("run.out: %w", err)
	}
	return unlock, nil
}
