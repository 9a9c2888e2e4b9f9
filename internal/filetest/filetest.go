// Package filetest writes and reads the files of tests. What fails ends the test.
package filetest

import (
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file, with the folders that it lies in, and returns its path.
func Write[T string | []byte](t testing.TB, path string, content T) string {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Temp writes a file of that name into a folder of the test and returns its path.
func Temp[T string | []byte](t testing.TB, name string, content T) string {
	t.Helper()
	return Write(t, filepath.Join(t.TempDir(), name), content)
}

// Read returns the bytes of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Sparse makes a file of n bytes in a folder of the test that takes no room and begins with head.
func Sparse(t testing.TB, n int64, head string) string {
	t.Helper()
	path := Temp(t, "large.jpg", head)
	if err := os.Truncate(path, n); err != nil {
		t.Skip(err)
	}
	return path
}
