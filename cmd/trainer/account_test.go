package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// data check --write writes a list without what cannot be read, from which a run trains and evaluates.
func TestCheckWrites(t *testing.T) {
	dir, flags := photoData(t)
	truncatedJPEG(t, filepath.Join(dir, "val", "004.png"))
	truncatedJPEG(t, filepath.Join(dir, "train", "003.png"))
	check.OK(t, os.Remove(filepath.Join(dir, "train", "007.png")))
	check := append([]string{"data", "check", "--config", tiny}, flags...)
	for split, want := range map[string]string{"train": "14 images that can be read", "val": "9 images that can be read"} {
		stdout, _ := must(t, exitDone, append(check, "--split", split, "--write", filepath.Join(dir, split+"-clean.csv"))...)
		contains(t, stdout, want, "inputs: ", "bad image: 1")
	}
	stdout, _ := must(t, exitDone, append(check, "--split", "train", "--json", "--write", filepath.Join(dir, "again.csv"))...)
	if m := parseJSON(t, stdout); m["written"] != 14.0 || m["ok"] != false {
		t.Errorf("%v", m)
	}
	a, err := os.ReadFile(filepath.Join(dir, "train-clean.csv"))
	if err != nil || !strings.HasPrefix(string(a), "filepath,title,image_id\ntrain/000.png,") {
		t.Errorf("%.100s, %v", a, err)
	}
	clean := []string{"--set", "data.kind=csv", "--set", "data.root=" + dir, "--set", "data.csv.train_files=train-clean.csv", "--set", "data.csv.val_files=val-clean.csv", "--set", "data.csv.id=image_id",
		"--set", "data.max_bad_share=0"}
	must(t, exitDone, append([]string{"train", "--config", tiny, "--max-steps", "2", "--out", filepath.Join(t.TempDir(), "run")}, clean...)...)
	must(t, exitDone, append([]string{"data", "check", "--config", tiny, "--split", "val"}, clean...)...)

	for _, bad := range [][]string{{"--write", "x.csv"}, {"--write", "x.csv", "--split", "train", "--captions-only"}} {
		fails(t, exitUsage, append(check, bad...), "--write is of one split whose images are opened")
	}
	fails(t, exitUsage, []string{"data", "check", "--config", tiny, "--split", "val", "--write", filepath.Join(dir, "no.csv")}, "its images are not files of their own")
}

// What is met and not used is said: by embed for a folder with links and images of other kinds, by train, check and
// stats for a list.
func TestInputsAreCounted(t *testing.T) {
	dir, flags := photoData(t)
	run := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, append([]string{"train", "--config", tiny, "--max-steps", "1", "--out", run}, flags...)...)
	folder := filepath.Join(dir, "mixed")
	check.OK(t, os.MkdirAll(filepath.Join(folder, "in"), 0o755))
	for _, name := range []string{"a.avif", "b.heic", "in/c.jp2", "in/notes.txt"} {
		check.OK(t, os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o644))
	}
	for to, name := range map[string]string{"val": "one", "test": "two"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(folder, name)); err != nil {
			t.Skip(err)
		}
	}
	truncatedJPEG(t, filepath.Join(dir, "val", "004.png"))
	embed := []string{"embed", "--checkpoint", run, "--images", folder, "--skip-bad"}
	stdout, _ := must(t, exitDone, append(embed, "--out", filepath.Join(dir, "g"))...)
	contains(t, stdout, "19 images of", "inputs: 24 files: 19 used; left out: ", "no image by its name: 1 (in/notes.txt)", "it cannot be read: 1", "(AVIF): 1 (a.avif)", "(HEIC): 1 (b.heic)")
	stdout, _ = must(t, exitDone, append(embed, "--out", filepath.Join(dir, "g"), "--json")...) // the shards are kept
	unit, _ := parseJSON(t, stdout)["inputs"].([]any)
	if len(unit) != 1 || unit[0].(map[string]any)["met"] != 24.0 || unit[0].(map[string]any)["used"] != 19.0 {
		t.Errorf("%v", unit)
	}

	table := "filepath\ttitle\n"
	for _, name := range []string{"000", "001", "002", "003", "005"} {
		table += "val/" + name + ".png\t\"go\" " + name + "\n./val//" + name + ".png\tqqq\n"
	}
	table += "val/006.png\t...\n"
	check.OK(t, os.WriteFile(filepath.Join(dir, "t.tsv"), []byte(table), 0o644))
	args := []string{"--config", tiny, "--set", "data.kind=csv", "--set", "data.root=" + dir, "--set", "data.csv.train_files=t.tsv", "--set", "data.csv.val_files=t.tsv", "--set", "data.csv.quoting=none",
		"--set", "train.batch_size=4"}
	const want = "11 rows: 10 used; left out: nothing is left of it after cleaning: 1 ("
	for _, c := range [][]string{{"train", "--max-steps", "1", "--out", filepath.Join(dir, "run")}, {"data", "stats"}} {
		stdout, stderr := must(t, exitDone, append(c, args...)...)
		contains(t, stdout+stderr, want)
	}
	stdout, stderr := must(t, exitFailed, append([]string{"data", "check", "--split", "train"}, args...)...)
	contains(t, stdout+stderr, want)
	// The advice of the error of a table with bare quotation marks is this setting.
	fails(t, exitFailed, append([]string{"data", "stats"}, append(args, "--set", "data.csv.quoting=csv")...), `set data.csv.quoting = "none" if the table has no quoting`)
}
