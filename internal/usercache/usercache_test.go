package usercache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

func TestReadAndWrite(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	file := File("things.json")
	var got map[string]int
	if err := Read(file, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	check.OK(t, Write(file, map[string]int{"a": 1}))
	if err := Read(file, &got); err != nil || got["a"] != 1 {
		t.Errorf("%v, %v", got, err)
	}
	before := Stamp(file)
	check.OK(t, os.WriteFile(file, []byte("{"), 0o666))
	if err := Read(file, &got); err == nil || Stamp(file) == before || Stamp(file+"x") != "absent" {
		t.Errorf("damaged: %v", err)
	}
	if err := Write(filepath.Join(file, "below"), got); err == nil {
		t.Error("a file below a file: no error")
	}
	// What cannot be put in its place leaves nothing behind.
	folder := File("folder.json")
	check.OK(t, os.Mkdir(folder, 0o777))
	if err := Write(folder, got); err == nil {
		t.Error("a folder instead of the file: no error")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.tmp")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestNoCacheFolder(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if file := File("things.json"); file != "" {
		t.Skip("this system has a cache folder without HOME: " + file)
	}
	check.Error(t, Write("", 1), "XDG_CACHE_HOME")
}

// TestWriteAfterAKill: what a process that was killed while it wrote left behind is used again, so that such files do not add up.
func TestWriteAfterAKill(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "things.json")
	check.OK(t, os.WriteFile(filepath.Join(dir, ".tmp-things.json"), []byte("half of it"), 0o666))
	check.OK(t, Write(file, 7))
	got := 0
	if err := Read(file, &got); err != nil || got != 7 {
		t.Errorf("%v, %v", got, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the folder has %v (%v)", list, err)
	}
}
