package files

import (
	"os"
	"syscall"

	"github.com/geoalign/geoalign/internal/words"
)

// longestPath is the length in bytes from which on no system opens a file.
const longestPath = 32767

// CheckPath returns the error of opening a file of a name that is longer than any, with a part of the name alone: lists
// that others made may have texts of any length instead of a name.
func CheckPath(path string) error {
	if len(path) <= longestPath {
		return nil
	}
	return &os.PathError{Op: "open", Path: words.Shown(path), Err: syscall.ENAMETOOLONG}
}
