package data

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b-1.tar", "b-0.tar", "b-10.tar", "odd{1..3}.tar", "odd[1].tar"} {
		filetest.Write(t, filepath.Join(dir, name), "")
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a-{08..11}.tar"}, "a-08.tar a-09.tar a-10.tar a-11.tar"},
		{[]string{"a-{8..11}.tar"}, "a-8.tar a-9.tar a-10.tar a-11.tar"},
		{[]string{"{x,y}-{0..1}.tar"}, "x-0.tar x-1.tar y-0.tar y-1.tar"},
		{[]string{"b-?.tar", "b-*.tar"}, "b-0.tar b-1.tar b-0.tar b-1.tar b-10.tar"},
		{[]string{"{b,c}-0.tar"}, "b-0.tar c-0.tar"},
		{[]string{"odd{1..3}.tar", "odd[1].tar"}, "odd{1..3}.tar odd[1].tar"}, // which are there
		{nil, ""},
	} {
		got, err := Expand(dir, c.names)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], dir+"/")
		}
		if err != nil || !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %q, want %s (%v)", c.names, got, c.want, err)
		}
	}
	if got, err := Expand("elsewhere", []string{filepath.Join(dir, "b-{0..0}.tar")}); err != nil || got[0] != filepath.Join(dir, "b-0.tar") {
		t.Errorf("%q, %v", got, err)
	}
	for _, folder := range []string{"set [1]", "set {1,2}", `set *?\`, "set {"} { // which is not a pattern
		root := filepath.Join(dir, folder)
		if err := os.Mkdir(root, 0o777); err != nil {
			t.Fatal(err)
		}
		want := []string{filepath.Join(root, "b-0.tar"), filepath.Join(root, "b-1.tar")}
		for _, path := range want {
			filetest.Write(t, path, "")
		}
		for _, name := range []string{"b-*.tar", "b-{0..1}.tar", "b-{0,1}.t[ab]r", "./b-?.tar"} {
			if got, err := Expand(root, []string{name}); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s in the folder %s: %q, %v", name, folder, got, err)
			}
		}
	}
	for name, want := range map[string]string{
		"a-{0..3.tar":                 "a { without its }",
		"a-{{0..3}}.tar":              "a { without its }",
		"a-{3..0}.tar":                "{3..0} is not a range",
		"a-{a..c}.tar":                "{a..c} is not a range",
		"a-{0..9999999}.tar":          "is not a range of at most 1000000",
		"{0..9999}{0..9999}{0..9999}": "more than 1000000 files",
	} {
		if _, err := Expand(dir, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := Expand(dir, []string{"c-*.tar"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
