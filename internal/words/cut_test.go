package words

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	if got := Cut("abc", 3); got != "abc" {
		t.Error(got)
	}
	if got, want := Cut(strings.Repeat("a", 10)+strings.Repeat("b", 1000)+"cc", 15), "aaaaaaaaaa ... [997 bytes] ... bbbcc"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n := range 40 { // characters stay whole
		if got := Cut(strings.Repeat("\u00e9\u4e16", 100), n); !utf8.ValidString(got) || len(got) > n+30 {
			t.Errorf("%d: %q", n, got)
		}
	}
	Cut(strings.Repeat("\x80", 100), 10) // no UTF-8
}

func TestShown(t *testing.T) {
	if got, want := Shown("a\x1b[2J\nb"), `a\u001b[2J\nb`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Shown(strings.Repeat("\x1b", 200_000_000)); len(got) > 7*shown {
		t.Error(len(got))
	}
}

func TestShort(t *testing.T) {
	if Short(nil) != nil {
		t.Error("nil")
	}
	if err := errors.New("few words"); Short(err) != err {
		t.Error("a short error is itself")
	}
	err := Short(fmt.Errorf("open %s: %w", strings.Repeat("x", 1e6), fs.ErrNotExist))
	if n := len(err.Error()); n > short+50 || !strings.HasSuffix(err.Error(), "xxx: file does not exist") || !errors.Is(err, fs.ErrNotExist) {
		t.Error(n, err)
	}
}
