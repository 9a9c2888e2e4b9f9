//go:build !((linux || darwin) && (amd64 || arm64)) || static

package library

import (
	"errors"
	"runtime"
	"unsafe"
)

// library cannot be loaded by this program; the built-in kernels are used.
type library struct{ file string }

func dlopen(string) (*library, error) {
	if Static {
		return nil, errStatic
	}
	return nil, errors.New("libraries are not loaded at run time on " + runtime.GOOS + "/" + runtime.GOARCH)
}

func (l *library) sym(string) (uintptr, error) { return 0, errors.New("no library") }

func (l *library) path(uintptr) string { return l.file }

func cString(unsafe.Pointer) string { return "" }

func ccall(uintptr, ...uintptr) uintptr { return 0 }

func setCEnv(string, string) error { return nil }
