//go:build !unix

package files

import "os"

// own says that a file may be another one's: there are no locks.
func own(*os.File) bool { return false }

// rename gives a file its name, which systems without locks allow once it is closed.
func rename(f *os.File, path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
