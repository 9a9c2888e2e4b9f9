package main

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestSearchDrawsHits: --out is a sheet of the pictures found, of rows too, whose query opens no model; and a training
// run says how to come here.
func TestSearchDrawsHits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	stdout, stderr := must(t, exitDone, tinyArgs(dir, "--max-steps", "2")...)
	gallery := filepath.Join(dir, "embeddings-test")
	contains(t, stdout, "of the texts find an image of theirs first")
	contains(t, stderr, "next: "+filepath.Join(dir, "report.html"), "trainer explain "+dir, "trainer search "+filepath.Join(dir, "embeddings-val"))
	must(t, exitDone, "embed", dir, "--split", "test", "--quiet")
	for _, query := range [][]string{{"--text", "a red circle"}, {"--row", "0"}} {
		file := filepath.Join(t.TempDir(), "hits.png")
		must(t, exitDone, append([]string{"search", gallery, "--k", "3", "--out", file}, query...)...)
		f := check.Get(os.Open(file))(t)
		m := check.Get(png.Decode(f))(t)
		f.Close()
		if b := m.Bounds(); b.Dx() != 640 || b.Dy() < 200 { // three tiles in a row
			t.Errorf("%s: the sheet is %v", query, b)
		}
	}
	for want, args := range map[string][]string{
		"--out must end in .png or .jpg": {"--row", "0", "--out", "hits.gif"},
		"are texts: leave out --in text": {"--row", "0", "--in", "text", "--out", filepath.Join(dir, "a.png")},
	} {
		code := exitFailed
		if args[len(args)-1] == "hits.gif" {
			code = exitUsage
		}
		_, stderr := must(t, code, append([]string{"search", gallery}, args...)...)
		contains(t, stderr, want)
	}
}
