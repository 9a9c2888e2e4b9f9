package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
)

func TestReferenceIsUpToDate(t *testing.T) {
	want, err := render("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/config.md does not match the comments of the sections: run go generate ./config")
	}
}

func TestReferenceNamesEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range config.Paths() {
		dot := strings.LastIndexByte(p, '.')
		_, section, ok := strings.Cut(string(text), "## ["+p[:dot]+"]\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !ok || !strings.Contains(section, "| `"+p[dot+1:]+"` |") {
			t.Errorf("%s is missing", p)
		}
	}
}

func TestRenderRefusesAKeyWithoutComment(t *testing.T) {
	source := t.TempDir()
	text := "package c\n// Config is a run.\ntype Config struct {\n\tRun Run `toml:\"run\"`\n}\n// Run names a run.\ntype Run struct {\n\tName string `toml:\"name\"`\n}\n"
	if err := os.Mkdir(source+"/config", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source+"/config/c.go", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := render(source); err == nil || !strings.Contains(err.Error(), "run.name has no comment") {
		t.Errorf("got %v", err)
	}
}
