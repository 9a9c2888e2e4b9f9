package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

var fuzzed = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// TestParsersDocumented: the table of parsers in docs/fuzzing.md has every fuzz target with its package, but that of
// geodesics, which parse nothing.
func TestParsersDocumented(t *testing.T) {
	root := filepath.Join("..", "..")
	text := check.Get(os.ReadFile(filepath.Join(root, "docs", "fuzzing.md")))(t)
	_, table, _ := strings.Cut(string(text), "\n## Parsers\n")
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("((?:`Fuzz\\w+`(?:, )?)+) in `([\\w/]+)`").FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			told[m[2]+" "+strings.Trim(name, "`")] = true
		}
	}
	targets := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, m := range fuzzed.FindAllSubmatch(text, -1) {
			targets++
			key := filepath.ToSlash(dir) + " " + string(m[1])
			if !told[key] && key != "objectives/geodesic FuzzDistances" {
				t.Errorf("docs/fuzzing.md lacks %s", key)
			}
			delete(told, key)
		}
		return nil
	})
	if err != nil || targets < 60 {
		t.Fatalf("%d targets found, %v", targets, err)
	}
	for key := range told {
		t.Errorf("docs/fuzzing.md has %s, which is not there", key)
	}
}

// TestGoldensDocumented: the table of docs/goldens.md has every script of tools/goldens.
func TestGoldensDocumented(t *testing.T) {
	root := filepath.Join("..", "..")
	text := check.Get(os.ReadFile(filepath.Join(root, "docs", "goldens.md")))(t)
	scripts, err := filepath.Glob(filepath.Join(root, "tools", "goldens", "*.py"))
	if err != nil || len(scripts) < 50 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, s := range scripts {
		if name := filepath.Base(s); !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/goldens.md lacks %s", name)
		}
	}
}
