package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// sentenceArgs train a small text tower for some steps.
func sentenceArgs(out string, more ...string) []string {
	args := []string{"train", "--config", "../../configs/simcse.toml", "--out", out}
	args = append(args, sets(append([]string{"train.max_steps=6", "train.eval_every_steps=0", "train.log_every_steps=1", "schedule.kind=constant", "schedule.warmup_steps=0", "model.text.width=16", "model.text.layers=1", "model.text.heads=2",
		"model.head.dim=16", "train.batch_size=8", "data.vocab_size=100", "data.scenes.epoch_samples=64", "data.scenes.val_samples=20", "compute.threads=2"}, more...)...)...)
	return args
}

// sentenceFolder writes triplets and pairs of sentences.
func sentenceFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	colours, shapes := []string{"red", "blue", "green"}, []string{"square", "circle", "star"}
	triplets, pairs := "sent0,sent1,hard_neg\n,empty,row\n", "sentence1,sentence2,label\n"
	for i := range 24 {
		a, b := colours[i%3]+" "+shapes[i/3%3], colours[(i+i%2)%3]+" "+shapes[i/3%3]
		triplets += fmt.Sprintf("a %s,there is a %s,a %s\n", a, a, colours[(i+1)%3]+" "+shapes[i/3%3])
		pairs += fmt.Sprintf("a %s,the %s,%d\n", a, b, i%2)
	}
	for name, text := range map[string]string{"nli.csv": triplets, "pairs.csv": pairs, "lines.txt": strings.ReplaceAll(triplets, ",", " ")} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return dir
}

// lastLoss is that of the last row of the log of a run.
func lastLoss(t *testing.T, run string) string {
	t.Helper()
	b := check.Get(os.ReadFile(filepath.Join(run, "metrics.jsonl")))(t)
	loss := ""
	for line := range strings.Lines(string(b)) {
		var row struct{ Loss json.Number }
		if json.Unmarshal([]byte(line), &row) == nil && row.Loss != "" {
			loss = row.Loss.String()
		}
	}
	return loss
}

// TestSimCSERun: a run on captions is evaluated by its siblings, stopped and resumed at the same place, embedded,
// exported and reported as texts alone; what needs images says so.
func TestSimCSERun(t *testing.T) {
	whole, out := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "run")
	must(t, exitDone, sentenceArgs(whole)...)
	must(t, exitDone, sentenceArgs(out, "train.max_steps=3")...)
	must(t, exitDone, sentenceArgs(out)...)
	if a, b := lastLoss(t, whole), lastLoss(t, out); a != b || a == "" {
		t.Errorf("the last loss is %s in one piece and %s in two", a, b)
	}
	fails(t, exitUsage, []string{"regions", "--checkpoint", out, "--out", t.TempDir()}, `model.system "simcse" has no image tower`)
	fails(t, exitUsage, []string{"finetune", "--checkpoint", out}, `the task retrieval needs images with texts, which model.system "simcse" lacks: train on from it with trainer train --config FILE --set 'init.checkpoint=`)
	fails(t, exitUsage, []string{"finetune", "--checkpoint", out, "--task", "classification", "--out", t.TempDir()}, "the task classification needs a tower that reads pixels, and the model in "+out, `(model.system "simcse") has none: fine-tune another checkpoint`)
	stdout, _ := must(t, exitDone, "eval", "--checkpoint", out, "--json")
	var r struct {
		Task, Metric string
		Queries      int
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Task != "siblings" || r.Metric != "eval/siblings/map" || r.Queries != 80 {
		t.Errorf("four phrasings of 20 scenes: got %s (%v)", stdout, err)
	}
	stdout, _ = must(t, exitDone, "embed", "--checkpoint", out)
	if !strings.Contains(stdout, "0 images and 20 texts of 16 channels") {
		t.Errorf("embed says %s", stdout)
	}
	must(t, exitDone, "embed", "--checkpoint", out, "--texts", filepath.Join(sentenceFolder(t), "lines.txt"), "--out", filepath.Join(t.TempDir(), "vectors"))
	stdout, _ = must(t, exitDone, "report", out, "--json")
	contains(t, stdout, `"texts": 20`)
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || strings.Contains(stdout, `"images"`) {
		t.Errorf("%v: %s", err, stdout)
	}
	contains(t, string(page), "The model has no image tower, so there are no pairs.", "20 texts of the val split", "Filled dots are texts.")
	for _, form := range []string{"hf", "onnx", "geoalign"} {
		must(t, exitDone, "export", "--checkpoint", out, "--to", form, "--out", filepath.Join(t.TempDir(), form))
	}
	for _, task := range []string{"retrieval", "probe", "zeroshot", "reid"} {
		fails(t, exitUsage, []string{"eval", "--checkpoint", out, "--task", task}, `needs a model with an image encoder, and model.system "simcse" has none`)
	}
	fails(t, exitUsage, []string{"export", "--checkpoint", out, "--to", "hf", "--side", "image", "--out", filepath.Join(t.TempDir(), "x")}, "it has no image tower")
	fails(t, exitUsage, []string{"explain", "--checkpoint", out, "--image", "x.png", "--text", "a"}, `model.system "simcse" has no images`)
	fails(t, exitUsage, []string{"embed", "--checkpoint", out, "--images", t.TempDir()}, `model.system "simcse" has no images`)
	fails(t, exitUsage, []string{"eval", "--checkpoint", out, "--task", "sentence_pairs"}, "needs a model that was fine-tuned on pairs of sentences")
}

// TestSentenceFiles: triplets train a tower that is evaluated on tasks of pairs, and its checkpoint is fine-tuned on
// pairs by itself and jointly; data commands know sentences, and bad input is told.
func TestSentenceFiles(t *testing.T) {
	dir := sentenceFolder(t)
	files := []string{"data.root=" + dir, "data.kind=sentences", `data.sentences.train_files=["nli.csv"]`, "data.sentences.sentence=sent0"}
	base := filepath.Join(t.TempDir(), "base")
	triplets := append([]string{"data.sentences.positive=sent1", "data.sentences.negative=hard_neg", "data.max_bad_share=0.1", `eval.sentences.tasks=["mrpc=pairs.csv,pairs.csv"]`, "eval.sentences.isotropy=0"}, files...)
	stdout, stderr := must(t, exitDone, sentenceArgs(base, triplets...)...)
	if !strings.Contains(stderr, "data, train: 25 rows: 24 used; left out: an empty text: 1") || !strings.Contains(stdout, "mrpc") {
		t.Errorf("got %s\n%s", stdout, stderr)
	}
	for _, more := range [][]string{{"objective.sentence_pairs.encoding=separate"}, {"objective.sentence_pairs.encoding=joint", "model.text.pool=class"}} {
		out := filepath.Join(t.TempDir(), "run")
		pairs := append([]string{"model.system=sentence_pairs", "objective.simcse.weight=0", "objective.sentence_pairs.weight=1", "data.root=" + dir, "data.kind=sentence_pairs", "data.sentence_pairs.task=mrpc",
			`data.sentence_pairs.train_files=["pairs.csv"]`, `data.sentence_pairs.val_files=["pairs.csv"]`, "init.checkpoint=" + base}, more...)
		stdout, stderr := must(t, exitDone, sentenceArgs(out, pairs...)...)
		if !strings.Contains(stdout, "mrpc accuracy") || !strings.Contains(stderr, "left at random (pair_head/classifier/bias") {
			t.Errorf("got %s\n%s", stdout, stderr)
		}
		stdout, _ = must(t, exitDone, "eval", "--checkpoint", out, "--json")
		if !strings.Contains(stdout, `"majority": 50`) || !strings.Contains(stdout, `"eval/sentence_pairs/accuracy"`) {
			t.Errorf("eval says %s", stdout)
		}
		must(t, exitDone, "embed", "--checkpoint", out, "--texts", filepath.Join(dir, "lines.txt"), "--out", filepath.Join(t.TempDir(), "vectors"))
		fails(t, exitUsage, sentenceArgs(out+"2", append(pairs, "model.text.heads=4")...), "model.text.heads: the checkpoint", "use its value, or another checkpoint")
	}
	args := func(command string, more ...string) []string {
		list := []string{"data", command, "--config", "../../configs/simcse.toml", "--set", "train.eval_every_steps=0"}
		list = append(list, sets(append(files, more...)...)...)
		return list
	}
	if stdout, _ := must(t, exitDone, args("stats")...); !strings.Contains(stdout, "captions                                        24") {
		t.Errorf("stats say %s", stdout)
	}
	if stdout, _ := must(t, exitDone, args("check")...); strings.Contains(stdout, "duplicate image") {
		t.Errorf("check says %s", stdout)
	}
	fails(t, exitUsage, args("preview"), `data.kind "sentences" has no images to draw`)
	fails(t, exitFailed, args("stats", "data.sentences.sentence=text"), `nli.csv: line 1: data.sentences.sentence: there is no column "text": the columns are ["sent0" "sent1" "hard_neg"]`)
	fails(t, exitUsage, sentenceArgs(base+"2", append(files, "model.system=clip", "objective.simcse.weight=0", "objective.itc.in_batch_weight=1")...), `data.kind: must not be "sentences"`, `for model.system "simcse"`)
	fails(t, exitUsage, sentenceArgs(base+"2", "model.text.dropout=0"), "model.text.dropout: must be > 0", "two passes of a text differ by dropout alone")
}

// TestMCSERun: captions with images train beside batches of sentences.
func TestMCSERun(t *testing.T) {
	dir, out := sentenceFolder(t), filepath.Join(t.TempDir(), "run")
	args := []string{"train", "--config", "../../configs/mcse.toml", "--out", out}
	for _, s := range []string{"train.max_steps=4", "train.log_every_steps=1", "model.text.width=16", "model.text.layers=1", "model.text.heads=2", "model.image.width=16", "model.image.depth=1", "model.image.heads=2",
		"model.head.dim=8", "train.batch_size=8", "data.scenes.epoch_samples=64", "data.scenes.val_samples=20", "data.root=" + dir, `data.sentences.train_files=["lines.txt"]`, "data.sentences.batches=1"} {
		args = append(args, "--set", s)
	}
	must(t, exitDone, args...)
	log := check.Get(os.ReadFile(filepath.Join(out, "metrics.jsonl")))(t)
	var got []bool // steps whose loss on images is not 0
	for line := range strings.Lines(string(log)) {
		var row map[string]any
		if json.Unmarshal([]byte(line), &row) == nil && row["loss/mcse"] != nil {
			got = append(got, row["loss/mcse"].(float64) > 0)
		}
	}
	if want := []bool{true, false, true, false}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("steps with images: %v, want %v\n%s", got, want, log)
	}
	must(t, exitDone, "eval", "--checkpoint", out, "--task", "siblings")
}
