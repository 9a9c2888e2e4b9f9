//go:build !((linux || darwin) && (amd64 || arm64)) || static

package mpi

import (
	"errors"
	"runtime"

	"github.com/geoalign/geoalign/internal/kernel/library"
)

// opened is a library that the loader has opened: never in this program.
type opened struct{ file string }

func open(string) (*opened, error) {
	if library.Static {
		return nil, errors.New("this is the static build, which loads no libraries")
	}
	return nil, errors.New("libraries are not loaded at run time on " + runtime.GOOS + "/" + runtime.GOARCH)
}

func (l *opened) share() error { return nil }

func (l *opened) close() {}

func (l *opened) symbol(string) uintptr { return 0 }

func libc(string) uintptr { return 0 }

func path(uintptr) string { return "" }

func ccall(uintptr, ...uintptr) uintptr { return 0 }

func setenv(string, string) error { return nil }
