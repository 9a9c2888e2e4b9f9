//go:build !unix

package files

// Lock does nothing on systems without locks on folders.
func Lock(string) (release func() error, held bool, err error) {
	return func() error { return nil }, false, nil
}
