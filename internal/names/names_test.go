package names

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

const (
	nfc = "caf\u00e9.png"
	nfd = "cafe\u0301.png"
)

func TestClean(t *testing.T) {
	for name, want := range map[string]string{"": "", "a.png": "a.png", "./a.png": "a.png", "a//b.png": "a/b.png", "a/./b/../c.png": "a/c.png", "/x//y": "/x/y", `a\b.png`: `a\b.png`} {
		if got := Clean(name); got != want {
			t.Errorf("Clean(%q) = %q, want %q", name, got, want)
		}
	}
	if got := Below("/r", "./a.png"); got != "/r/a.png" {
		t.Error(got)
	}
	if got := Below("/r", "/q//a.png"); got != "/q/a.png" {
		t.Error(got)
	}
}

func TestIndex(t *testing.T) {
	x := NewIndex[int]()
	x.Set("./a.png", 1)
	x.Set(nfd, 2)
	x.Set("d/"+nfc, 3)
	x.Set("e/"+nfc, 4)
	x.Set("e/"+nfd, 5)
	for _, c := range []struct {
		name string
		v    int
		how  How
	}{
		{"a.png", 1, Exact}, {".//a.png", 1, Exact}, {"b.png", 0, Missing}, {nfd, 2, Exact}, {nfc, 2, Folded}, {"d/" + nfd, 3, Folded},
		{"e/" + nfc, 4, Exact}, {"e/" + nfd, 5, Exact},
	} {
		if v, how := x.Find(c.name); v != c.v || how != c.how {
			t.Errorf("%q: %d, %d, want %d, %d", c.name, v, how, c.v, c.how)
		}
	}
	// Two accents in two orders: a name that is neither form of the two that are there.
	x.Set("a\u0323\u0307", 6)
	x.Set("\u1ea1\u0307", 7)
	if _, how := x.Find("a\u0307\u0323"); how != Ambiguous {
		t.Errorf("two candidates: %d", how)
	}
	if x.Set("a.png", 9); len(x.exact) != 7 {
		t.Errorf("%d names", len(x.exact))
	}
}

func TestForm(t *testing.T) {
	for name, want := range map[string]string{"a.png": "", nfc: "NFC", nfd: "NFD", nfc + nfd: "neither NFC nor NFD"} {
		if got := Form(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func put(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Skipf("this file system does not take the name %q: %v", name, err)
	}
}

func TestSibling(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, nfd)
	put(t, dir, "plain.png")
	if _, err := os.Stat(filepath.Join(dir, nfc)); err == nil {
		t.Skip("this file system does not tell NFC from NFD")
	}
	if got := Sibling(filepath.Join(dir, nfc)); got != filepath.Join(dir, nfd) {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{nfd, "plain.jpg", "th\u00e9.png"} {
		if got := Sibling(filepath.Join(dir, name)); got != "" {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// Backslashes are turned where a file shows that the list was written on Windows, and nowhere else.
func TestList(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a/b.png")
	put(t, dir, `c\d.png`)
	windows := List{Root: dir}
	for name, want := range map[string]string{`a\b.png`: "a/b.png"} {
		if got := windows.Name(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
	if got := windows.Name(`x\y.png`); got != "x/y.png" || windows.Turned != 2 {
		t.Errorf("got %q, %d turned", got, windows.Turned)
	}
	here := List{Root: dir}
	for _, name := range []string{`c\d.png`, `a\b.png`} { // the first shows that it is a letter
		if got := here.Name(name); got != name {
			t.Errorf("%q: %q", name, got)
		}
	}
	if here.Turned != 0 {
		t.Error(here.Turned)
	}
}
