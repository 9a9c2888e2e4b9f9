package main

import (
	"encoding/json"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// album is a folder with some of the pictures of the tests, and flags that encode them with a tiny model.
func album(t *testing.T) (dir string, flags []string) {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	dir = filepath.Join(t.TempDir(), "pics")
	check.OK(t, os.Mkdir(dir, 0o777))
	for i, name := range []string{"a.png", "b.png", "c.png"} {
		m := image.NewGray(image.Rect(0, 0, 20+i, 16))
		for k := range m.Pix {
			m.Pix[k] = byte(k * (i + 5))
		}
		writePNG(t, filepath.Join(dir, name), m)
	}
	return dir, []string{"--model", weightstest.Stored(t, "clip"), "--set", "data.tokens=6", "--set", "compute.backend=builtin"}
}

// TestPhotos: a folder is encoded, asked, and asked again without its model being named.
func TestPhotos(t *testing.T) {
	dir, flags := album(t)
	out, _ := must(t, exitDone, append([]string{"photos", dir}, flags...)...)
	for _, want := range []string{"3 pictures encoded, ", dir + " has 3 pictures, encoded by ", "ask: trainer photos " + dir + " \"a dog on a beach\""} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwant %q", out, want)
		}
	}
	code, out, errOut := trainer(t, "photos", dir, "--set", "data.tokens=6", "a", "red", "zebra", "--limit", "2")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != exitDone || len(lines) != 3 || !strings.Contains(lines[1], filepath.Join(dir, "")) ||
		!strings.Contains(errOut, "note: the vocabulary of the model lacks zebra, which tells it nothing") || strings.Contains(errOut, "encoded") {
		t.Errorf("%d\n%s\n%s", code, out, errOut)
	}
	var answer struct {
		Images  int
		Score   string
		Hits    []struct{ Path string }
		Gallery struct{ Encoded, Images int }
	}
	check.OK(t, os.Remove(filepath.Join(dir, "b.png")))
	out, _ = must(t, exitDone, "photos", dir, "--set", "data.tokens=6", "--json", filepath.Join(dir, "a.png"), "-", "blue")
	check.OK(t, json.Unmarshal([]byte(out), &answer))
	if answer.Images != 2 || len(answer.Hits) != 1 || answer.Hits[0].Path != filepath.Join(dir, "c.png") || answer.Gallery.Encoded != 0 || answer.Gallery.Images != 2 {
		t.Errorf("%s", out)
	}
	galleries := check.Get(filepath.Glob(filepath.Join(os.Getenv("XDG_DATA_HOME"), "geoalign", "photos", "pics-*")))(t)
	if len(galleries) != 1 {
		t.Fatalf("%v", galleries)
	}
	out, _ = must(t, exitDone, "search", galleries[0], "--set", "data.tokens=6", "--text", "a red square") // a gallery like any other
	if !strings.Contains(out, "2 rows of image") {
		t.Error(out)
	}
	out, _ = must(t, exitDone, "search", galleries[0], "--row", "0", "--filter", `{"name": {"contains": "C.P"}}`, "--fields", "name,bytes")
	if lines := strings.Split(out, "\n"); len(lines) != 4 || !strings.Contains(lines[1], `{"bytes":`) || !strings.Contains(lines[1], `"name":"c.png"}`) || !strings.Contains(out, "1 of the filter compared") {
		t.Error(out)
	}
	for _, x := range [][]string{{"--offset", "1"}, {"--min-score", "2"}, {"--filter", `{"name": "none"}`}} {
		out, _ = must(t, exitDone, append([]string{"search", galleries[0], "--row", "0", "--json"}, x...)...)
		var all found
		if check.OK(t, json.Unmarshal([]byte(out), &all)); len(all.Queries) != 1 || len(all.Queries[0]) != 0 {
			t.Errorf("%v: %s", x, out)
		}
	}
	fails(t, exitUsage, []string{"search", galleries[0], "--row", "0", "--filter", "{"}, "--filter: it is not JSON")
	fails(t, exitUsage, []string{"search", galleries[0], "--row", "0", "--offset", "-1"}, "--offset must be at least 0 (got -1)")
}

// TestPhotosRefused: what cannot be done is said in a line, with what to do.
func TestPhotosRefused(t *testing.T) {
	dir, flags := album(t)
	t.Setenv("HF_HUB_OFFLINE", "1")
	t.Setenv("HF_HOME", t.TempDir())
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "photos needs a FOLDER of pictures"},
		{dir, exitFailed, "the default model, openai/clip-vit-base-patch32, is not on this machine"},
		{dir + " a +", exitUsage, "+ has nothing behind it"},
		{dir + " nowhere.jpg", exitUsage, `there is no picture "nowhere.jpg"`},
		{dir + " a --limit 0", exitUsage, "--limit must be at least 1 (got 0)"},
		{dir + " a --serve", exitUsage, "leave the query out"},
		{dir + " --listen :80", exitUsage, "--listen is of --serve"},
		{dir + " --serve --listen 0.0.0.0:80", exitUsage, "can be reached from other machines"},
		{dir + "/none a", exitFailed, "the folder of pictures: "},
		{filepath.Join(dir, "a.png") + " a", exitFailed, "is not a folder: name the folder of the pictures"},
	} {
		code, _, errOut := trainer(t, append([]string{"photos"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: %d, %s\nwant %d, %s", c.args, code, errOut, c.code, c.want)
		}
	}
	must(t, exitDone, append([]string{"photos", dir}, flags...)...)
	_, _, errOut := trainer(t, "photos", dir, "--model", weightstest.Stored(t, "bert"))
	if !strings.Contains(errOut, "has no images") {
		t.Error(errOut)
	}
}
