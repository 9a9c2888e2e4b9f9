//go:build !unix

package files

import (
	"errors"
	"os"
)

var errNoFlock = errors.New("there are no locks on this system")

func systemFlock(*os.File) (bool, error) { return false, errNoFlock }

// rename gives a file or folder another name, which systems without locks allow once it is closed.
func rename(f *os.File, from, to string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(from, to)
}
