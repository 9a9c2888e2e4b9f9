package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// Mistakes of a configuration: each is one line with place, key, value and advice,
// exit code 2, and nothing is written.
func TestBadConfig(t *testing.T) {
	file := func(text string) string { return write(t, "bad.toml", text) }
	rows := []struct {
		name string
		args []string
		want []string
	}{
		{"unknown key", []string{"--config", file("[train]\nbatch_size = 8\nmax_step = 3\n")},
			[]string{"bad.toml:3: train.max_step: unknown key; did you mean train.max_steps?"}},
		{"unknown section", []string{"--config", file("[trian]\nbatch_size = 8\n")},
			[]string{"bad.toml:1", "trian", "train"}},
		{"text for a number", []string{"--config", file("[train]\nbatch_size = \"8\"\n")},
			[]string{"bad.toml:2: train.batch_size:", `"8"`}},
		{"number for a text", []string{"--config", file("[data]\nkind = 3\n")}, []string{"bad.toml:2: data.kind:", "3"}},
		{"fraction for a whole number", []string{"--set", "train.batch_size=8.5"}, []string{"train.batch_size", "8.5"}},
		{"text for a switch", []string{"--set", "data.flip=yes"}, []string{"data.flip", "yes"}},
		{"broken TOML", []string{"--config", file("[train\nbatch_size = 8\n")}, []string{"bad.toml:2: expected"}},
		{"no such file", []string{"--config", "nowhere/run.toml"}, []string{"nowhere/run.toml"}},
		{"no value", []string{"--config", tiny, "--set", "train.batch_size"}, []string{"must have the form dotted.path=value"}},
		{"nothing to set", []string{"--config", tiny, "--set", ""}, []string{`--set "": must have the form dotted.path=value; for example`}},
		{"no key", []string{"--config", tiny, "--set", "=b"}, []string{"--set =b: must have the form dotted.path=value, and names no key; for example"}},
		{"a key alone", []string{"--config", tiny, "--set", "run.name"}, []string{"--set run.name: must have the form dotted.path=value, and gives no value; for example --set run.name=VALUE"}},
		{"an empty number", []string{"--config", tiny, "--set", "train.batch_size="}, []string{`train.batch_size: must be an integer (got ""); give it a value`}},
		{"queue below the batch", []string{"--config", tiny, "--set", "queue.size=4"},
			[]string{"queue.size: must be 0 or at least train.batch_size (got 4)", "raise queue.size"}},
		{"two lengths", []string{"--config", tiny, "--set", "train.max_steps=3", "--set", "train.max_epochs=1"},
			[]string{"must not be set together"}},
		{"minutes with a cosine", []string{"--config", tiny, "--set", "train.max_minutes=1"},
			[]string{"schedule.kind: needs the length of the run in steps", `"constant"`}},
		{"re-ranking without a match head", []string{"--config", tiny, "--set", "objective.itm.weight=0"},
			[]string{"eval.rerank_top: must be 0 when objective.itm.weight is 0 (got 4)"}},
		{"folds that do not divide", []string{"--config", tiny, "--set", "eval.folds=5", "--set", "eval.rerank_top=0"},
			[]string{"eval.folds: must divide the 12 images of the split (got 5)"}},
		{"negative steps", []string{"--config", tiny, "--max-steps", "-1"}, []string{`invalid argument "-1" for "--max-steps" flag: must be a whole number > 0`}},
		{"image size", []string{"--config", tiny, "--set", "model.image.size=20"}, []string{"model.image.size", "multiple of model.image.patch"}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			stderr := fails(t, exitUsage, append([]string{"train", "--out", out}, r.args...), r.want...)
			if n := strings.Count(stderr, "\n"); n != 2 {
				t.Errorf("%d lines instead of the problem and the count: %s", n, stderr)
			}
			if names := names(t, filepath.Dir(out)); len(names) != 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

func TestBadPlaces(t *testing.T) {
	file := write(t, "file", "x")
	fails(t, exitUsage, tinyArgs(file), "run.out: is a file", "--out")
	fails(t, exitUsage, tinyArgs(filepath.Join(file, "run")), "run.out: ", "not a directory", "choose another folder with --out")
	if os.Getuid() != 0 { // root may write anywhere
		dir := t.TempDir()
		check.OK(t, os.Chmod(dir, 0o555))
		fails(t, exitFailed, tinyArgs(filepath.Join(dir, "run")), "permission denied", "make the folder writable")
	}
	vocab := write(t, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\na\nred\n")
	fails(t, exitFailed, tinyArgs(t.TempDir(), "--set", "data.vocab="+vocab), "data.vocab:", "vocab.txt", "[MASK]")
	fails(t, exitUsage, tinyArgs(t.TempDir(), "--set", "data.vocab=/nowhere/vocab.txt"), "data.vocab: there is no such file: /nowhere/vocab.txt")
	fails(t, exitUsage, tinyArgs(t.TempDir(), "--set", "init.checkpoint=/nowhere"), `init.checkpoint: there is no such folder (got "/nowhere")`)
	fails(t, exitFailed, tinyArgs(t.TempDir(), "--set", "init.checkpoint="+t.TempDir()), "init.checkpoint:", "no checkpoint in")
	fails(t, exitUsage, []string{"finetune", "--config", tiny}, "finetune needs RUN")
	fails(t, exitUsage, []string{"train", tiny}, "trainer train takes flags only", "did you mean --config "+tiny)
	fails(t, exitUsage, []string{"train", "train.max_steps=3"}, "did you mean --set train.max_steps=3?")
	fails(t, exitUsage, []string{"eval"}, "eval needs RUN")
	fails(t, exitFailed, []string{"eval", "--checkpoint", t.TempDir()}, "no checkpoint")
	fails(t, exitFailed, []string{"finetune", "--checkpoint", file}, "is a file: give the step folder or the run folder")
}

// What a run cannot change is refused by key, with what it was started with; what
// it can is listed.
func TestResumeWithAnotherConfig(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--max-steps", "2", "--quiet")...)
	text := check.Get(os.ReadFile(filepath.Join(dir, "config.toml")))(t)
	const again = "or start anew with --resume never"
	rows := []struct {
		code int
		set  []string
		want []string
	}{
		{exitUsage, []string{"--set", "model.image.width=64"}, []string{"model.image.width: the run in ", "was started with 32 (got 64)", again}},
		{exitUsage, []string{"--set", "model.image.heads=4"}, []string{"model.image.heads:", "was started with 2 (got 4)"}}, // same shapes, another model
		{exitUsage, []string{"--set", "model.text.layers=3"}, []string{"model.text.layers:"}},
		{exitUsage, []string{"--set", "model.image.size=32"}, []string{"model.image.size:"}},
		{exitUsage, []string{"--seed", "8"}, []string{"run.seed:", "was started with 7 (got 8)", again}},
		{exitUsage, []string{"--set", "queue.size=128"}, []string{"queue.size:", "was started with 64 (got 128)"}},
		{exitUsage, []string{"--set", "model.head.dim=8", "--seed", "8"}, []string{"model.head.dim:", "run.seed:", "2 problems"}},
		{exitFailed, []string{"--set", "objective.itm.weight=0", "--set", "eval.rerank_top=0"}, []string{"another architecture", "itm_head", "start anew with --resume never"}},
	}
	for _, r := range rows {
		fails(t, r.code, tinyArgs(dir, append(r.set, "--max-steps", "4")...), r.want...)
	}
	if now, _ := os.ReadFile(filepath.Join(dir, "config.toml")); string(now) != string(text) {
		t.Error("a refused run rewrote config.toml")
	}
	_, stderr := must(t, exitDone, tinyArgs(dir, "--max-steps", "4", "--set", "train.batch_size=4", "--set", "optimizer.lr=2e-3", "--set", "model.image.mlp=128")...)
	contains(t, stderr, "changed since the checkpoint: train.max_steps = 4 (was 2)", "changed since the checkpoint: train.batch_size = 4 (was 8)",
		"changed since the checkpoint: optimizer.lr = 0.002 (was 0.001)", "going on from step 2")
	if strings.Contains(stderr, "model.image.mlp") || strings.Contains(stderr, "kernels") { // 4 x width, as 0 says; the same as before
		t.Errorf("%s", stderr)
	}
	// Other kernels are told, with a setting or without.
	environment := filepath.Join(dir, "environment.json")
	text = check.Get(os.ReadFile(environment))(t)
	text = regexp.MustCompile(`"kernels": ".*"`).ReplaceAll(text, []byte(`"kernels": "openblas, avx2, 3 threads"`))
	check.OK(t, os.WriteFile(environment, text, 0o666))
	_, stderr = must(t, exitDone, tinyArgs(dir, "--max-steps", "5", "--set", "train.batch_size=4", "--set", "optimizer.lr=2e-3")...)
	contains(t, stderr, "changed since the checkpoint: kernels = ", `(was "openblas, avx2, 3 threads")`, "bit by bit")
}

// A run that goes on with other pixels of JPEG files than an earlier version had says so, if it reads files.
func TestResumeWithAnotherDecoder(t *testing.T) {
	_, flags := photoData(t)
	for name, r := range map[string]struct {
		flags []string
		told  bool
	}{"files": {flags, true}, "scenes": {nil, false}} {
		dir := filepath.Join(t.TempDir(), name)
		args := func(steps string) []string {
			return tinyArgs(dir, append([]string{"--max-steps", steps}, r.flags...)...)
		}
		must(t, exitDone, args("1")...)
		environment := filepath.Join(dir, "environment.json")
		text := check.Get(os.ReadFile(environment))(t)
		other := strings.Replace(string(text), `"decoder": "libjpeg-turbo"`, `"decoder": "builtin"`, 1)
		if other == string(text) {
			t.Fatalf("no decoder in %s", text)
		}
		check.OK(t, os.WriteFile(environment, []byte(other), 0o666))
		_, stderr := must(t, exitDone, args("2")...)
		if strings.Contains(stderr, `changed since the checkpoint: decoder of JPEG files = "libjpeg-turbo" (was "builtin"), so pixels differ`) != r.told {
			t.Errorf("%s: %s", name, stderr)
		}
	}
}

func TestEvalRefusesAnotherModel(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--max-steps", "2", "--quiet", "--set", "objective.itm.weight=0", "--set", "eval.rerank_top=0")...)
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--set", "model.image.heads=4"}, "model.image.heads: the checkpoint "+dir, "was made with 2 (got 4)")
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--config", write(t, "other.toml", "[train]\nmax_steps = 5\n")}, "model.image.size:", "model.text.width:")
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--set", "eval.rerank_top=4"}, "eval.rerank_top: must be 0 when objective.itm.weight is 0 (got 4)")
	fails(t, exitFailed, []string{"eval", "--checkpoint", dir, "--set", "eval.rerank_top=4", "--set", "objective.itm.weight=1"}, "needs a match head, and this model was trained without one: set eval.rerank_top = 0")
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--split", "train"}, `there is no split "train" to read: data of kind "scenes" has val, test, as its train split has no end`)
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--split", "foo"}, `there is no split "foo" to read: data of kind "scenes" has val, test`)
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--task", "naming"}, "no task \"naming\": the tasks are retrieval, probe, textprobe, sentences, sentiment, neighbours, zeroshot, reid, migration, siblings, sentence_pairs, classification, multimodal, entailment, ")
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--task", "vqa"}, "the task vqa needs a model that was fine-tuned for it (trainer finetune --task vqa)")
}

// Bad samples are counted, told and left out, up to data.max_bad_share.
func TestBadSamples(t *testing.T) {
	dir, flags := photoData(t)
	list := photoFiles(t, dir, "train", 16)
	list[3].Image = "train/missing.png"
	truncatedJPEG(t, filepath.Join(dir, "train", "cut.jpg"))
	list[7].Image = "train/cut.jpg"
	list[11].Caption = []string{"", "  "}
	writeList(t, filepath.Join(dir, "train.json"), list)
	args := append([]string{"train", "--config", tiny, "--max-steps", "8"}, flags...)

	_, stderr := must(t, exitDone, append(args, "--out", t.TempDir(), "--set", "data.max_bad_share=0.5")...)
	if n := strings.Count(stderr, "bad sample, skipped: "); n != 5 {
		t.Errorf("%d bad samples are told, want the first 5:\n%s", n, stderr)
	}
	contains(t, stderr, "bad sample, skipped: ", "missing.png", "cut.jpg", "train/011.png", "samples read were bad and skipped", "trainer data check")

	fails(t, exitFailed, append(args, "--out", t.TempDir(), "--set", "data.max_bad_share=0"), "1 of ", "samples are bad, more than data.max_bad_share = 0 allows", "trainer data check")
	stderr = fails(t, exitFailed, append(args, "--out", t.TempDir(), "--set", "data.max_bad_share=0.1"), "data.max_bad_share = 0.1", "mend the data")
	if !strings.Contains(stderr, "missing.png") && !strings.Contains(stderr, "cut.jpg") && !strings.Contains(stderr, "011.png") {
		t.Errorf("no example: %s", stderr)
	}
}

// A split that is not there is found before the first step.
func TestMissingSplits(t *testing.T) {
	dir, flags := photoData(t)
	args := append([]string{"train", "--config", tiny, "--max-steps", "2"}, flags...)
	out := t.TempDir()
	stderr := fails(t, exitUsage, append(args, "--out", out, "--set", "data.captions.val_files=none.json"), "data.captions.val_files:", "none.json", "no such file", "set it with --set data.root=FOLDER")
	if strings.Contains(stderr, "step 1") {
		t.Errorf("found after training: %s", stderr)
	}
	fails(t, exitUsage, append(args, "--out", out, "--set", "data.captions.val_files=[]"), "data.captions.val_files: must name at least one file")
	fails(t, exitUsage, append(args, "--out", out, "--set", "data.captions.train_files=[]"), "data.captions.train_files: must name at least one file")
	fails(t, exitUsage, append(args, "--out", out, "--set", "data.captions.train_files=none.json"), "data.captions.train_files:", "none.json")
	broken := filepath.Join(dir, "broken.json")
	check.OK(t, os.WriteFile(broken, []byte("[{\"image\": \"a.png\"}]"), 0o666))
	fails(t, exitFailed, append(args, "--out", out, "--set", "data.captions.train_files=broken.json"), "broken.json: entry 0", `"caption" is missing`)

	// Without evaluation during training a run needs no split for it.
	stdout, stderr := must(t, exitDone, append(args, "--out", out, "--set", "data.captions.val_files=[]", "--set", "train.eval_every_steps=0")...)
	contains(t, stderr, "there is nothing to evaluate on")
	if stdout != "run folder: "+out+"\n" {
		t.Errorf("stdout %q", stdout)
	}
	stdout, _ = must(t, exitDone, append(args, "--out", out, "--json", "--quiet", "--set", "data.captions.val_files=[]", "--set", "train.eval_every_steps=0")...)
	if m := parseJSON(t, stdout); m["path"] != out {
		t.Errorf("stdout %q", stdout)
	}
}

// A bad picture of an evaluation split is left out and counted as far as data.max_bad_share allows, else it stops the
// evaluation by name.
func TestBadEvaluationImage(t *testing.T) {
	dir, flags := photoData(t)
	truncatedJPEG(t, filepath.Join(dir, "val", "004.png"))
	out := t.TempDir()
	args := append([]string{"train", "--config", tiny, "--max-steps", "2", "--out", filepath.Join(out, "a")}, flags...)
	fails(t, exitFailed, args, "1 of 10 samples are bad, more than data.max_bad_share = 0.01 allows", "sample 4: ", "val/004.png")
	args = append([]string{"train", "--config", tiny, "--max-steps", "2", "--out", filepath.Join(out, "b"), "--set", "data.max_bad_share=0.1"}, flags...)
	_, stderr := must(t, exitDone, args...)
	contains(t, stderr, "evaluation: 1 of 10 images cannot be read and are left out (data.max_bad_share = 0.1), such as ", "val/004.png")
	stdout, stderr := must(t, exitDone, "eval", "--checkpoint", filepath.Join(out, "b"), "--json")
	contains(t, stderr, "1 of 10 images cannot be read")
	if m := parseJSON(t, stdout); m["left_out"] != 1.0 {
		t.Errorf("left_out is %v", m["left_out"])
	}
}
