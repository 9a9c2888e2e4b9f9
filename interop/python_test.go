package interop

import (
	"os"
	"testing"
)

// python is the interpreter that GEOALIGN_PYTHON names. Tests that need one are skipped without it.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("GEOALIGN_PYTHON")
	if path == "" {
		t.Skip("GEOALIGN_PYTHON names no interpreter with the programs to compare with: make interop PYTHON=... sets it")
	}
	return path
}
