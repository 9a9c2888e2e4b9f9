//go:build aix || darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris

package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// Map maps the first size bytes of a file into memory for reading. A file that cannot be mapped,
// as on some file systems, gives nil: it is then to be read.
func Map(f *os.File, size int64) []byte {
	if size <= 0 || int64(int(size)) != size {
		return nil
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	return b
}

// Unmap gives back what Map returned.
func Unmap(b []byte) error { return unix.Munmap(b) }
