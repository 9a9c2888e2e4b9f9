//go:build !((linux || darwin) && (amd64 || arm64)) || static

package dynlib

import (
	"errors"
	"runtime"
	"unsafe"
)

// Library is a shared library that is loaded: never in this program.
type Library struct{ File string }

// Open says why no library can be loaded.
func Open(string) (*Library, error) {
	if Static {
		return nil, ErrStatic
	}
	return nil, errors.New("libraries are not loaded at run time on " + runtime.GOOS + "/" + runtime.GOARCH)
}

// Share does nothing.
func (l *Library) Share() error { return nil }

// Close does nothing.
func (l *Library) Close() {}

// Symbol returns 0.
func (l *Library) Symbol(string) uintptr { return 0 }

// Func returns an error.
func (l *Library) Func(string) (uintptr, error) { return 0, errors.New("no library") }

// Path returns the file that was asked for.
func (l *Library) Path(uintptr) string { return l.File }

// Libc returns 0.
func Libc(string) uintptr { return 0 }

// String returns an empty string.
func String(unsafe.Pointer) string { return "" }

// Call returns 0.
func Call(uintptr, ...uintptr) uintptr { return 0 }

// SetEnv does nothing.
func SetEnv(string, string, bool) error { return nil }
