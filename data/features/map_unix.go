//go:build aix || darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris

package features

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of a file for reading. A file that cannot be mapped,
// as on some file systems, gives nil: it is then read piece by piece.
func mapFile(f *os.File, size int64) []byte {
	if size <= 0 || int64(int(size)) != size {
		return nil
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	return b
}

// unmap gives back what mapFile returned.
func unmap(b []byte) error { return unix.Munmap(b) }
