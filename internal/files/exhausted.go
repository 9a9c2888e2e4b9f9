package files

import (
	"errors"
	"syscall"
)

// Exhausted reports whether err says that the process or the machine has run out of open files
// or of memory. Such an error tells nothing about the file that was asked for.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
