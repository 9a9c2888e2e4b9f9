package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
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
		check.OK(t, Replace(path, []byte(text)))
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

// TestReplaceAtOnce: of several who write a file at once each writes one of its own, and what killed ones left is used again.
func TestReplaceAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	slow := func(text string, meanwhile func()) error {
		return ReplaceFrom(path, func(w io.Writer) error {
			if _, err := w.Write(bytes.Repeat([]byte(text), 2*replaceBytes)); err != nil {
				return err
			}
			meanwhile()
			_, err := io.WriteString(w, text)
			return err
		})
	}
	has := func(text string, n int) {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != strings.Repeat(text, n) {
			t.Errorf("%d bytes, want %d of %s: %v", len(b), n, text, err)
		}
	}
	if err := slow("x", func() {
		if err := slow("y", func() {}); err != nil {
			t.Error(err)
		}
		has("y", 2*replaceBytes+1)
		if err := Replace(path, []byte("z")); err != nil {
			t.Error(err)
		}
		has("z", 1)
	}); err != nil {
		t.Error(err)
	}
	has("x", 2*replaceBytes+1)

	check.OK(t, os.WriteFile(filepath.Join(dir, ".tmp-a"), []byte("what a killed process left"), 0o666))
	if err := Replace(path, []byte("new")); err != nil {
		t.Error(err)
	}
	has("new", 1)
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestSweep: temporary files with drawn names that killed processes left go at the next write of the same file; those in work, those just
// made, those of other files and what only looks similar stay.
func TestSweep(t *testing.T) {
	for how, old := range map[string]time.Duration{"": 2 * leftAfter, FlockFails: 2 * leftWithoutLocks, FlockLies: 2 * leftWithoutLocks} {
		simulated(t, how)
		dir := t.TempDir()
		at := func(name string, age time.Duration) string {
			path := filepath.Join(dir, name)
			check.OK(t, os.WriteFile(path, nil, 0o666))
			check.OK(t, os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)))
			return path
		}
		at(".tmp-a-0123abcd", old)
		at(".tmp-a-0123abce", old/4) // too young
		at(".tmp-a-b-0123abcd", old) // of a-b
		at(".tmp-a-0123abcx", old)
		want := 4 // and a
		if how == "" {
			f := check.Get(os.Open(at(".tmp-a-0123abcf", old)))(t)
			defer f.Close()
			if !own(f) {
				t.Fatal("no lock")
			}
			want++
		} else {
			want++ // .tmp-a itself is made by one that has it in work, as far as is known
			at(".tmp-a", 0)
		}
		check.OK(t, Replace(filepath.Join(dir, "a"), []byte("x")))
		list, err := os.ReadDir(dir)
		if err != nil || len(list) != want {
			t.Errorf("flock %q: %v (%v)", how, list, err)
		}
	}
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	if err := Probe(dir); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v (%v)", list, err)
	}
	if err := Probe(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
