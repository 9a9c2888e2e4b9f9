package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestAlignWith: the scores of two fits are averaged over the same texts of stored features alone, and not those of
// an image with one caption and with another.
func TestAlignWith(t *testing.T) {
	const texts = 60
	folder := featuresFolder(t, texts, 6) // of the images the first rows are used
	data := append(alignArgs(t, 60), "--set", "data.root="+folder, "--set", "data.pairs.index=pairs.tsv", "--set", "data.pairs.val_samples=4", "--set", "data.pairs.test_samples=8", "--set", "data.pairs.hold=last")
	fit := func(text func(j int) (image int, ok bool)) string {
		var b strings.Builder
		b.WriteString("image_row\ttext_row\n")
		for j := range texts {
			if i, ok := text(j); ok {
				fmt.Fprintf(&b, "%d\t%d\n", i, j)
			}
		}
		check.OK(t, os.WriteFile(filepath.Join(folder, "pairs.tsv"), []byte(b.String()), 0o666))
		dir := t.TempDir()
		name := filepath.Base(dir) + ".tsv" // each run keeps its table
		check.OK(t, os.Rename(filepath.Join(folder, "pairs.tsv"), filepath.Join(folder, name)))
		must(t, exitDone, append(append([]string{"train", "--out", dir}, data...), "--set", "data.pairs.index="+name)...)
		return dir
	}
	two := func(j int) (int, bool) { return j / 2, true }
	own, same := fit(two), fit(two)
	must(t, exitDone, "eval", "--checkpoint", own, "--with", same)
	for what, other := range map[string]func(j int) (int, bool){
		"16 and 8 texts": func(j int) (int, bool) { return j / 2, j%2 == 0 },
		"text 0 is row 44 of image 0 and row 46 of image 0": func(j int) (int, bool) { return (j + texts - 2) % texts / 2, true },
		"text 1 is row 45 of image 0 and row 45 of image 1": func(j int) (int, bool) { return j/4*2 + min(1, j%4), true },
	} {
		fails(t, exitUsage, []string{"eval", "--checkpoint", own, "--with", fit(other)}, "other splits", what)
	}
}
