package main

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
)

// TestInit: from a table of captions to a run that trains on it, without a key written by hand.
func TestInit(t *testing.T) {
	dir := t.TempDir()
	table := "file,what is seen\n"
	for i := range 60 {
		name := "photos/" + strings.Repeat("x", i+1) + ".png"
		path := filetest.Write(t, filepath.Join(dir, name), "")
		f := check.Get(os.Create(path))(t)
		picture := image.NewGray(image.Rect(0, 0, 8, 8))
		picture.Pix[i] = 255
		check.OK(t, png.Encode(f, picture))
		check.OK(t, f.Close())
		table += name + ",\"" + strings.Repeat("a dog runs ", i%3+1) + "\"\n"
	}
	data := filetest.Write(t, filepath.Join(dir, "captions.csv"), table)
	file := filepath.Join(dir, "my.toml")
	_, stderr := must(t, exitDone, "init", data, "--out", file)
	for _, want := range []string{"next: trainer data check --config " + file, "trainer finetune --checkpoint runs/clip"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q: %s", want, stderr)
		}
	}
	text := string(filetest.Read(t, file))
	for _, want := range []string{"base = \"photos\"", `image = "file"`, `caption = "what is seen"`, "val = 5", "image", "tokens = "} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
	must(t, exitDone, "validate", "--config", file)
	must(t, exitDone, "data", "check", "--config", file)
	must(t, exitDone, append([]string{"train", "--config", file, "--out", filepath.Join(dir, "run"), "--max-steps", "1", "--quiet"},
		"--set", "train.batch_size=8", "--set", "model.image.size=16", "--set", "queue.size=16", "--set", "queue.start_steps=0")...)

	fails(t, exitUsage, []string{"init", data, "--out", file}, "my.toml is there already")
	fails(t, exitFailed, []string{"init", filepath.Join(dir, "photos")}, "holds no list of images with captions")
	stdout, _ := must(t, exitDone, "init", data, "--json", "--base", "geomm-clip")
	var said struct{ Kind, Config string }
	check.OK(t, json.Unmarshal([]byte(stdout), &said))
	if said.Kind != "csv" || !strings.Contains(said.Config, `base = "geomm-clip"`) {
		t.Error(stdout)
	}
}
