package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestMissingInputs: validate, a dry run and train name the key of each file and folder that is
// not there or of the wrong kind, and say so with one exit code.
func TestMissingInputs(t *testing.T) {
	dir, flags := photoData(t)
	file := filepath.Join(dir, "train.json")
	rows := []struct {
		set  []string
		want string
	}{
		{[]string{"data.root=/nowhere"}, `data.root: there is no such folder (got "/nowhere"); name the folder of the data with --set data.root=FOLDER`},
		{[]string{"data.root=" + file}, "data.root: must be a folder and is a file"},
		{[]string{"data.captions.train_files=train.json,more.json"}, "data.captions.train_files: there is no such file: " + filepath.Join(dir, "more.json") + ` (got "more.json"); relative paths start from data.root`},
		{[]string{"data.captions.val_files=val"}, "data.captions.val_files: must be a regular file: " + filepath.Join(dir, "val")},
		{[]string{"data.vocab=vocab.txt"}, "data.vocab: there is no such file: " + filepath.Join(dir, "vocab.txt")},
		{[]string{"init.checkpoint=/nowhere"}, `init.checkpoint: there is no such folder (got "/nowhere")`},
		{[]string{"objective.mafa.connector=/nowhere"}, `objective.mafa.connector: there is no such folder (got "/nowhere")`},
		{[]string{"objective.distill_scores.teacher=" + file}, "objective.distill_scores.teacher: must be a folder and is a file"},
		{[]string{"data.kind=karpathy", "data.karpathy.file=all.json", "data.karpathy.image_root=images"}, "data.karpathy.file: there is no such file: " + filepath.Join(dir, "all.json")},
		{[]string{"data.kind=karpathy", "data.karpathy.file=train.json", "data.karpathy.image_root=images"}, `data.karpathy.image_root: there is no such folder (got "images")`},
		{[]string{`eval.beside=["zeroshot"]`, "eval.zeroshot.images=photos"}, `eval.zeroshot.images: there is no such folder (got "photos"); relative paths start from data.root`},
		{[]string{`eval.beside=["zeroshot"]`, "eval.zeroshot.images=train", "eval.zeroshot.classes=names.txt"}, "eval.zeroshot.classes: there is no such file: " + filepath.Join(dir, "names.txt")},
		{[]string{`eval.beside=["zeroshot"]`, "eval.zeroshot.images=train", "eval.zeroshot.templates_file=val"}, "eval.zeroshot.templates_file: must be a regular file: " + filepath.Join(dir, "val")},
		{[]string{"data.kind=folder", "data.root=/nowhere"}, `data.root: there is no such folder (got "/nowhere")`},
	}
	for _, r := range rows {
		args := append([]string{"--config", tiny, "--out", filepath.Join(t.TempDir(), "run")}, flags...)
		args = append(args, sets(r.set...)...)
		for _, command := range [][]string{{"validate"}, {"train", "--dry-run"}, {"train"}} {
			stderr := fails(t, exitUsage, append(command, args...), r.want)
			if n := strings.Count(stderr, r.want[:strings.Index(r.want, ":")+1]); n != 1 {
				t.Errorf("%q: told %d times:\n%s", r.set, n, stderr)
			}
		}
	}
	// Only validate looks at what this run does not read.
	more := append([]string{"--config", tiny, "--out", filepath.Join(t.TempDir(), "run")}, append(flags, "--set", "data.captions.test_files=none.json",
		"--set", "eval.textprobe.train=train.tsv", "--set", "eval.textprobe.test=test.tsv", "--set", "eval.zeroshot.classes=names.txt")...)
	fails(t, exitUsage, append([]string{"validate"}, more...), "data.captions.test_files: there is no such file", "eval.textprobe.train: there is no such file", "eval.textprobe.test: there is no such file", "eval.zeroshot.classes: there is no such file")
	must(t, exitDone, append([]string{"train", "--dry-run"}, more...)...)
	must(t, exitDone, append([]string{"validate", "--config", tiny}, flags...)...)
}

// TestMissingImages: eval and embed count the images that are not there before they encode anything, and name the
// first.
func TestMissingImages(t *testing.T) {
	dir, flags := photoData(t)
	out := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(out, append(flags, "--max-steps", "1", "--quiet")...)...)
	for _, name := range []string{"000.png", "002.png"} {
		check.OK(t, os.Remove(filepath.Join(dir, "val", name)))
	}
	for _, command := range []string{"eval", "embed"} {
		stderr := fails(t, exitFailed, []string{command, "--checkpoint", out, "--split", "val"}, "2 of ", "image files cannot be read: correct their paths or data.root, or remove the entries",
			filepath.Join(dir, "val", "000.png"), filepath.Join(dir, "val", "002.png"))
		if strings.Contains(stderr, "encoding") {
			t.Errorf("%s encoded before it looked: %s", command, stderr)
		}
	}
}

// TestWrongLists: what a list is instead, and what to do about it.
func TestWrongLists(t *testing.T) {
	dir, flags := photoData(t)
	rows := []struct{ text, want string }{
		{`{"image": "a.png", "caption": "a"}` + "\n" + `{"image": "b.png", "caption": "b"}`, "these are JSON lines, one entry a line, and not a JSON list: write [ before the first entry"},
		{`{"image": "a.png", "caption": "a"}` + "\n", "these are JSON lines"},
		{`{"images": []}`, "not a JSON list of entries with image and caption"},
		{`[{"image": "a.png", "caption": " . "}]`, "data.vocab: is empty, so the vocabulary is learned from the 0 captions of the train split: tokenizer: no word to learn a vocabulary from: give its entries captions"},
		{`[]`, "the list is empty"},
	}
	for _, r := range rows {
		check.OK(t, os.WriteFile(filepath.Join(dir, "list"), []byte(r.text), 0o666))
		fails(t, exitFailed, append(append([]string{"data", "stats"}, flags...), "--set", "data.captions.train_files=list"), r.want)
	}
}

// TestEvalOfOtherData: an evaluation asks for the split that it reads and for no other.
func TestEvalOfOtherData(t *testing.T) {
	run := t.TempDir()
	must(t, exitDone, tinyArgs(run, "--max-steps", "2", "--quiet")...)
	dir, _ := photoData(t)
	args := func(list string, more ...string) []string {
		return append([]string{"--checkpoint", run, "--set", "data.kind=captions", "--set", "data.root=" + dir, "--set", list}, more...)
	}
	must(t, exitDone, append([]string{"eval"}, args("data.captions.val_files=val.json")...)...)
	must(t, exitDone, append([]string{"eval"}, args("data.captions.test_files=test.json", "--split", "test")...)...)
	must(t, exitDone, append([]string{"embed"}, args("data.captions.test_files=test.json", "--split", "test")...)...)
	fails(t, exitUsage, append([]string{"eval"}, args("data.captions.test_files=test.json", "--split", "val")...), "data.captions.val_files: must name at least one file")
	fails(t, exitUsage, append([]string{"finetune"}, args("data.captions.val_files=val.json")...), `data.captions.train_files: must name at least one file for data.kind "captions"`)
	check.OK(t, os.WriteFile(filepath.Join(dir, "empty.json"), []byte(`[{"image": "a.png", "caption": []}]`), 0o666))
	fails(t, exitFailed, append([]string{"eval"}, args("data.captions.val_files=empty.json")...), "none of the 1 images of the evaluation split has a caption of at least one word")
}

// TestFinetuneNamesTheKey: a parameter of another shape is a problem of the configuration.
func TestFinetuneNamesTheKey(t *testing.T) {
	run := t.TempDir()
	must(t, exitDone, tinyArgs(run, "--max-steps", "2", "--quiet")...)
	rows := []struct{ set, want string }{
		{"model.image.width=64", "model.image.width: the checkpoint "},
		{"model.text.positions=20", "model.text.positions: the checkpoint "},
		{"model.head.dim=8", "model.head.dim: the checkpoint "},
	}
	for _, r := range rows {
		fails(t, exitUsage, []string{"finetune", "--checkpoint", run, "--out", filepath.Join(t.TempDir(), "out"), "--set", r.set}, r.want, "was made with", "has the shape", "use its value")
	}
}
