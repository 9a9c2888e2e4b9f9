package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/weights/hub/hubtest"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// TestImportByName: a name is fetched once into the cache of the hub, and files that nothing reads are not.
func TestImportByName(t *testing.T) {
	folder, contents := weightstest.Folder(t, "clip"), map[string]string{"flax_model.msgpack": "other"}
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		contents[e.Name()] = string(text)
	}
	s := hubtest.New(t, "0123456789abcdef0123456789abcdef01234567", contents)
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_ENDPOINT", s.Hub.URL)
	t.Chdir(t.TempDir())

	fails(t, exitFailed, []string{"import", "--from", "org/other", "--settings"},
		`there is no file or folder "org/other" here: hub: org/other: there is no such model at `)
	fails(t, exitUsage, []string{"import", "--from", "a/b/c", "--settings"}, "is not a name of a model")
	fails(t, exitFailed, []string{"import", "--from", "./org/tiny", "--settings"}, "no such file")
	stdout, _ := must(t, exitDone, "models")
	contains(t, stdout, "no models in ")
	stdout, _ = must(t, exitDone, "import", "--from", "org/tiny", "--settings")
	contains(t, stdout, `model.text.style=clip`)
	stdout, _ = must(t, exitDone, "models", "--json")
	contains(t, stdout, `"repo": "org/tiny"`, `"model.safetensors"`)
	s.Hub.Close()
	must(t, exitDone, "import", "--from", "org/tiny@main", "--settings")
	t.Setenv("HF_HUB_OFFLINE", "1")
	must(t, exitDone, "import", "--from", "org/tiny", "--settings")
	must(t, exitDone, "models", "--update", "org/tiny")
	fails(t, exitFailed, []string{"import", "--from", "org/tiny", "--settings"}, "HF_HUB_OFFLINE is set")
}
