package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// classesArgs train a small classifier for some steps.
func classesArgs(out string, more ...string) []string {
	args := []string{"train", "--config", "../../configs/classes.toml", "--out", out}
	args = append(args, sets(append([]string{"train.max_steps=6", "train.eval_every_steps=0", "train.log_every_steps=1", "schedule.kind=constant", "schedule.warmup_steps=0", "model.image.size=16", "model.image.width=16", "model.image.depth=1", "model.image.heads=2",
		"model.head.dim=16", "train.batch_size=8", "data.scenes.epoch_samples=64", "data.scenes.test_samples=20", "eval.probe_samples=40", "compute.threads=2", "objective.classes.mixup=0.2"}, more...)...)...)
	return args
}

// A model whose parameters have exploded is not evaluated, and says so.
func TestClassificationOfExploded(t *testing.T) {
	dir := t.TempDir()
	stderr := fails(t, exitFailed, classesArgs(dir, "train.max_steps=1", "optimizer.lr=1e25", "optimizer.clip_norm=0"), "example 0: a score is NaN")
	if strings.Contains(stderr, "panic") {
		t.Errorf("%s", stderr)
	}
	fails(t, exitFailed, []string{"eval", "--checkpoint", dir}, "example 0: a score is NaN")
	fails(t, exitFailed, []string{"embed", "--checkpoint", dir, "--out", t.TempDir()}, "the features of row 0 are not finite (NaN in column 0)")
}

// TestClassificationOfClip: a classifier does not start from the tower of a system whose structure no style has, and
// is told of no value that would do.
func TestClassificationOfClip(t *testing.T) {
	stderr := fails(t, exitUsage, []string{"finetune", "--checkpoint", "testdata/oldruns/clip-v0", "--task", "classification", "--out", t.TempDir()},
		`model.image.style: the checkpoint`, `an image tower of model.system "clip" without model.image.style, a structure that no style has (got ""); use another checkpoint`)
	if strings.Contains(stderr, "use its value") {
		t.Errorf("got %s", stderr)
	}
}

// TestClassificationRun: a classifier is trained, stopped and resumed at the same place, evaluated with a page and a
// file of results, probed, fine-tuned for other classes, and says what it does not know.
func TestClassificationRun(t *testing.T) {
	whole, out := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "run")
	must(t, exitDone, classesArgs(whole)...)
	must(t, exitDone, classesArgs(out, "train.max_steps=3")...)
	stdout, stderr := must(t, exitDone, classesArgs(out)...)
	contains(t, stdout, "classification on test: 20 images, 64 classes", "commonest class %")
	contains(t, stderr, "chance level of classes: 4.159")
	if a, b := lastLoss(t, whole), lastLoss(t, out); a != b || a == "" {
		t.Errorf("the last loss is %s in one piece and %s in two", a, b)
	}
	page, results := filepath.Join(t.TempDir(), "page.html"), filepath.Join(t.TempDir(), "classes.csv")
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", out, "--json", "--out", page, "--results", results)
	var r struct {
		Task      string
		Images    int
		Classes   int
		Top1      *float64
		Top5      float64
		Majority  float64
		Confusion [][]int
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Task != "classification" || r.Images != 20 || r.Classes != 64 || r.Top1 == nil || r.Top5 < *r.Top1 || r.Majority < 5 || len(r.Confusion) != 64 {
		t.Errorf("%v: %.400s", err, stdout)
	}
	f := check.Get(os.Open(results))(t)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 21 || strings.Join(rows[0], ",") != "image,class" || rows[1][0] != "scenes/test/0" || !strings.Contains(rows[1][1], " ") {
		t.Errorf("results %v (%v)", rows, err)
	}
	text := check.Get(os.ReadFile(page))(t)
	contains(t, string(text), "Classification on test", "Wrong answers", `<dd class="no">`, "data:image/png;base64,", "Heat maps: what the patches add to the logit", "most often taken for")
	if all, maps := strings.Count(string(text), "<img "), strings.Count(string(text), `alt="where the model looks"`); all != 2*20 || maps != 20 {
		t.Errorf("%d pictures, of which %d are heat maps", all, maps)
	}
	run := check.Get(os.ReadFile(filepath.Join(out, "report.html")))(t)
	contains(t, string(run), "Classification on test, step 6")
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", out, "--task", "probe")
	contains(t, stdout, "linear")
	for _, form := range []string{"timm", "onnx"} {
		_, stderr = must(t, exitDone, "export", "--checkpoint", out, "--to", form, "--out", filepath.Join(t.TempDir(), form))
		contains(t, stderr, "left out: class_head")
	}
	stdout, _ = must(t, exitDone, "inspect", "--checkpoint", out)
	contains(t, stdout, "eval/classification/top1")

	of := func(classes ...string) []string {
		var dirs []string
		for _, c := range classes {
			dirs = append(dirs, "train/"+c, "test/"+c)
		}
		return []string{"--set", "data.kind=folder", "--set", "data.root=" + classFolder(t, dirs...)}
	}
	animals, known := of("cat", "dog", "emu"), of("red circle", "blue square")
	tuned := filepath.Join(t.TempDir(), "tuned")
	args := append([]string{"finetune", "--checkpoint", out, "--out", tuned, "--set", "train.max_steps=2", "--set", "train.batch_size=4", "--set", "init.image.layer_decay=0.5"}, animals...)
	_, stderr = must(t, exitDone, args...)
	contains(t, stderr, "2 left at random (class_head/classifier/bias, class_head/classifier/weight)", "chance level of classes: 1.099", "times the learning rate: image tower")
	fails(t, exitUsage, append([]string{"eval", "--checkpoint", tuned}, of("cat", "yak")...), `has 2 classes, of which the model does not know "yak": it was trained on 3 others`)
	stdout, _ = must(t, exitDone, append([]string{"eval", "--checkpoint", out}, known...)...) // two of its 64
	contains(t, stdout, "4 images, 64 classes", "62 of 64 classes have no image")
	args = append(args, "--set", "data.changed=accept")
	fails(t, exitFailed, append(args[:len(args):len(args)], known...), "was trained on 3 classes, and the data has 2: go on with the data that it was trained on")
	fails(t, exitFailed, append(args[:len(args):len(args)], of("cat", "dog", "fox")...), `class 2 of`, `is "emu", and of the data "fox"`)
	fails(t, exitUsage, classesArgs(out+"2", "data.kind=captions", `data.captions.train_files=["x.json"]`, "data.root="+captionFolder(t)), `data.kind: has 0 classes, and model.system "classes" tells at least 2 (got "captions")`)
}

// captionFolder has one picture with a caption.
func captionFolder(t *testing.T) string {
	t.Helper()
	dir := classFolder(t, "a")
	if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(`[{"image": "a/a.png", "caption": "a dot", "image_id": 1}]`), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestClassificationOfPairs: finetune --task classification takes the image tower of a model of images and texts, and
// of folders of classes, by the image size and the vocabulary that they have.
func TestClassificationOfPairs(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "tuned")
	must(t, exitDone, tinyArgs(dir, "--max-steps", "2")...)
	folders := classFolder(t, "train/cat", "train/dog", "train/emu", "test/cat", "test/emu")
	stdout, stderr := must(t, exitDone, "finetune", "--checkpoint", dir, "--task", "classification", "--out", out, "--set", "data.kind=folder", "--set", "data.root="+folders, "--set", "eval.split=test",
		"--set", "train.batch_size=2", "--set", "train.max_steps=2", "--set", "objective.classes.cutmix=1", "--set", "schedule.warmup_steps=0")
	contains(t, stderr, "left at random (class_head/classifier/bias, class_head/classifier/weight)")
	contains(t, stdout, "4 images, 3 classes", "emu")
	fails(t, exitUsage, []string{"eval", "--checkpoint", out, "--task", "retrieval"}, "has no text tower")
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--task", "classification"}, "needs a model that was fine-tuned for it (trainer finetune --task classification)")
}
