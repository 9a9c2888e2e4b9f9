package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestReplace: a file is as it was until all of the new one is there, and what fails leaves
// nothing behind.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	has := func(want string) {
		t.Helper()
		list, err := os.ReadDir(dir)
		text, rerr := os.ReadFile(path)
		if err != nil || rerr != nil || len(list) != 1 || string(text) != want {
			t.Errorf("%v with %q (%v, %v), want one file with %q", list, text, err, rerr, want)
		}
	}
	for _, text := range []string{"old", "new"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		has(text)
	}
	broken := errors.New("broken")
	err := ReplaceFrom(path, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 3*replaceBytes))
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	has("new")
	if err := Replace(dir, nil); err == nil {
		t.Error("a folder is replaced")
	}
	if err := Replace(filepath.Join(dir, "none", "a"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
	has("new")
}

// Two that replace a file at the same time do not write into each other's: the last one stays, as a whole.
func TestReplaceByTwo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	err := ReplaceFrom(path, func(w io.Writer) error {
		_, first := w.Write(bytes.Repeat([]byte("1"), 3*replaceBytes))
		second := Replace(path, bytes.Repeat([]byte("2"), 5*replaceBytes))
		_, rest := w.Write([]byte("1"))
		return errors.Join(first, second, rest)
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if want := bytes.Repeat([]byte("1"), 3*replaceBytes+1); err != nil || !bytes.Equal(text, want) {
		t.Errorf("%d bytes (%v), want the %d of the last one", len(text), err, len(want))
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left %v (%v)", list, err)
	}
}
