package dynlib

import (
	"errors"
	"strings"
)

// ErrStatic says why a static program has no libraries.
var ErrStatic = errors.New("this is the static build, which loads no libraries")

// Absent reports whether the loader's message says that there is no such file.
func Absent(err error) bool {
	s := err.Error()
	return strings.Contains(s, "cannot open shared object file: No such file") || strings.Contains(s, "no such file")
}
