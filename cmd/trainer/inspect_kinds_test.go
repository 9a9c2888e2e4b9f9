package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// TestDamagedGallery: a row that changed in a gallery, with the time of its file as it was, is found by search and by
// inspect --verify, which name the file; embed makes it anew. Galleries of a split too, and of a damaged caption.
func TestDamagedGallery(t *testing.T) {
	dir := t.TempDir()
	ck, texts := filepath.Join(dir, "run"), filepath.Join(dir, "texts.txt")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "2")...)
	check.OK(t, os.WriteFile(texts, []byte("a red circle\na blue square\na green star\n"), 0o666))
	for out, c := range map[string]struct {
		file  string
		again string
		embed []string
	}{
		"texts": {"texts-00001.safetensors", "run the same embed again", []string{"--texts", texts, "--shard", "2"}},
		"names": {"texts-00000.jsonl", "run the same embed again", []string{"--texts", texts, "--shard", "2"}},
		"split": {"texts.jsonl", "embed the split again", []string{"--split", "test"}},
	} {
		out = filepath.Join(dir, out)
		embed := append([]string{"embed", "--checkpoint", ck, "--out", out, "--quiet"}, c.embed...)
		must(t, exitDone, embed...)
		stdout, _ := must(t, exitDone, "inspect", out)
		contains(t, stdout, "gallery", "16 channels", c.file)
		stdout, _ = must(t, exitDone, "inspect", out, "--verify")
		contains(t, stdout, "whole", c.file)
		path := filepath.Join(out, c.file)
		b := check.Get(os.ReadFile(path))(t)
		st := check.Get(os.Stat(path))(t)
		b[len(b)-8] ^= 2
		check.OK(t, os.WriteFile(path, b, 0o666))
		check.OK(t, os.Chtimes(path, time.Time{}, st.ModTime()))
		fails(t, exitFailed, []string{"search", out, "--in", "text", "--row", "0"}, path+" was damaged or changed: its checksum is ", c.again)
		fails(t, exitFailed, []string{"inspect", out, "--verify"}, "1 of ", " damaged: "+c.file+": ", c.again)
		stdout, _ = must(t, exitFailed, "inspect", out, "--verify", "--json")
		contains(t, stdout, `"kind": "gallery"`, `"damaged": 1`, `"state": "damaged"`)
		must(t, exitDone, embed...)
		must(t, exitDone, "search", out, "--in", "text", "--row", "0")
		must(t, exitDone, "inspect", out, "--verify")
	}
}

// TestInspectKinds: what is not a checkpoint is described in short, flags of checkpoints are refused there, and what is
// of no kind gets the list.
func TestInspectKinds(t *testing.T) {
	npz := "../../data/features/testdata/all.npz"
	stdout, _ := must(t, exitDone, "inspect", npz)
	contains(t, stdout, "kind  features", "the arrays f2, f4, f8")
	must(t, exitDone, "inspect", npz, "--verify")
	fails(t, exitUsage, []string{"inspect", npz, "--group", "model"}, `--group is of a run or a step folder, and this is of the kind "features"`)
	fails(t, exitFailed, []string{"inspect", "testdata/tiny.toml"}, "is not a file or folder that inspect reads: give a folder of one step")
	fails(t, exitFailed, []string{"inspect", filepath.Join(t.TempDir(), "none"), "--verify"}, "no such file")
	stdout, _ = must(t, exitDone, "inspect", "../../gallery/testdata/v1/split", "--verify")
	contains(t, stdout, "no checksum", "an index of another version, which search builds anew")
	b := check.Get(os.ReadFile(npz))(t)
	at := strings.Index(string(b), "NUMPY") + 100 // of the first array
	b[at] ^= 1
	damaged := filepath.Join(t.TempDir(), "x.npz")
	check.OK(t, os.WriteFile(damaged, b, 0o666))
	fails(t, exitFailed, []string{"inspect", damaged, "--verify"}, "1 of 1 file damaged: x.npz: ", "its CRC-32 is ")
}
