//go:build !unix

package run

// Lock does nothing on systems without locks on folders.
func Lock(string) (unlock func() error, err error) { return func() error { return nil }, nil }
