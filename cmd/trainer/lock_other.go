//go:build !unix

package main

// lockFolder does nothing on systems without locks on folders.
func lockFolder(string) (unlock func() error, err error) { return func() error { return nil }, nil }
