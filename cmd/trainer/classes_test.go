package main

import (
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// classFolder writes a folder with two small images of each of some classes.
func classFolder(t *testing.T, classes ...string) string {
	t.Helper()
	dir := t.TempDir()
	for k, class := range classes {
		check.OK(t, os.MkdirAll(filepath.Join(dir, class), 0o755))
		for i, name := range []string{"a.png", "b.png"} {
			m := image.NewRGBA(image.Rect(0, 0, 9, 7))
			for p := range m.Pix {
				m.Pix[p] = uint8(60*k + 10*i + p%3)
			}
			m.Set(1, 1, color.White)
			f := check.Get(os.Create(filepath.Join(dir, class, name)))(t)
			check.OK(t, png.Encode(f, m))
			check.OK(t, f.Close())
		}
	}
	return dir
}

// TestZeroShotImages classifies images by prompts and probes their features at the evaluations of a run, and with eval.
func TestZeroShotImages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	stdout, stderr := must(t, exitDone, tinyArgs(dir, "--max-steps", "2", "--set", `eval.beside=["zeroshot", "probe"]`, "--set", `eval.zeroshot.templates=["a {}", "there is a {}"]`,
		"--set", "eval.probe_samples=40", "--set", "eval.probe_hold=0.5")...)
	contains(t, stderr, "zero-shot top-1 ", "linear probe top-1 ")
	contains(t, stdout, "zero-shot accuracy", "linear", "The decay ")
	log := check.Get(os.ReadFile(filepath.Join(dir, "metrics.jsonl")))(t)
	contains(t, string(log), `"eval/zeroshot/top1":`, `"eval/zeroshot/class_top1":`, `"eval/probe/top1":`, `"eval/probe/decay":`, `"eval/retrieval/rsum":`)
	for _, draw := range []bool{false, true} { // the page of the run, and one drawn anew from its folder
		if draw {
			must(t, exitDone, "report", dir, "--no-model")
		}
		page := check.Get(os.ReadFile(filepath.Join(dir, "report.html")))(t)
		contains(t, string(page), "Zero-shot classification on val, step 2", "Linear probe on val, step 2", "confusion of classes")
	}
	if err := os.WriteFile(filepath.Join(dir, "classes.json"), []byte(`[{"title": "x", "table": {"names": ["a"]}}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, exitFailed, []string{"report", dir, "--no-model"}, "classes.json: eval: a table of 1 classes has 0 numbers", "remove it")

	eval := []string{"eval", "--checkpoint", dir, "--task", "zeroshot"}
	stdout, _ = must(t, exitDone, append(eval, "--json", "--split", "test", "--set", "eval.zeroshot.average=scores")...)
	var got struct {
		Task, Split                      string
		Images, Prompts, Classes         int
		Top1, Top5, Chance               float64
		ClassNames                       []string `json:"class_names"`
		Confusion                        [][]int
		PerClass                         []struct{ Class string } `json:"per_class"`
		MeanTop1                         float64                  `json:"class_top1"`
		Unlabelled, Pairs, Train, Voters int
	}
	check.OK(t, json.Unmarshal([]byte(stdout), &got))
	images := 0
	for _, row := range got.Confusion {
		for _, n := range row {
			images += n
		}
	}
	if got.Task != "zeroshot" || got.Split != "test" || got.Classes != 64 || got.Prompts != 128 || got.Chance != 100./64 || got.Images != 10 || images != 10 || len(got.Confusion) != 64 || got.ClassNames[0] != "red circle" || len(got.PerClass) == 0 {
		t.Errorf("%+v", got)
	}

	// A folder of classes beside the data, with names and templates of its own.
	root := classFolder(t, "red_circle", "blue_square", "small")
	names, templates, out := write(t, "names.txt", "small\ttiny thing\nred_circle\tred circle\nblue_square\tblue square\nsmall\tsmall thing\n"), write(t, "templates.txt", "a {}\n{}\n"), filepath.Join(t.TempDir(), "classes.html")
	folder := append(eval, "--set", "eval.zeroshot.images="+root, "--set", "eval.zeroshot.classes="+names, "--set", "eval.zeroshot.templates_file="+templates)
	stdout, _ = must(t, exitDone, append(folder, "--out", out)...)
	contains(t, stdout, "zeroshot: 6 images, 3 classes of 8 prompts, step 2", "chance %                   33.33  100.00", "tiny thing", "blue square")
	page := check.Get(os.ReadFile(out))(t)
	contains(t, string(page), "evaluation of classes", "tiny thing", "confusion of classes", "<svg", "Zero-shot classification, step 2")
	stdout, _ = must(t, exitDone, append(folder, "--json")...) // no split was read
	if split, named := parseJSON(t, stdout)["split"]; named {
		t.Errorf("the images of a folder are said to be those of the split %v", split)
	}
	fails(t, exitUsage, append(folder, "--split", "test"), "the task zeroshot reads files of its own and no split of the data: leave out --split")
	check.OK(t, os.WriteFile(filepath.Join(root, "small", "c.png"), []byte("no picture"), 0o644))
	fails(t, exitFailed, folder, "evaluation: data: 1 of 7 samples are bad, more than data.max_bad_share = 0.01 allows", "c.png")
	stdout, _ = must(t, exitDone, append(folder, "--json", "--set", "data.max_bad_share=0.2")...)
	if m := parseJSON(t, stdout); m["left_out"] != 1.0 || m["images"] != 6.0 {
		t.Errorf("%v", m)
	}

	fails(t, exitUsage, append(eval, "--set", `eval.zeroshot.templates=["a {}", "a thing"]`), `eval.zeroshot.templates: number 2 has no place for the name of a class (got "a thing"): write {} there`)
	fails(t, exitUsage, append(eval, "--set", "eval.zeroshot.classes="+write(t, "few.txt", "red circle\n")), "eval.zeroshot.classes: has 1 lines, and the images have 64 classes")
	fails(t, exitUsage, append(eval, "--set", "eval.zeroshot.images=/nowhere"), "eval.zeroshot.images: there is no such folder")
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--out", out}, "the task retrieval has no classes and no examples to draw")
	// What a run evaluates on at its end is looked at before it begins.
	if said := fails(t, exitUsage, tinyArgs(t.TempDir(), "--max-steps", "1", "--set", `eval.beside=["zeroshot"]`, "--set", "eval.zeroshot.templates_file=/nowhere"), "eval.zeroshot.templates_file: there is no such file"); strings.Contains(said, "loss") {
		t.Errorf("the run began: %s", said)
	}
	fails(t, exitUsage, tinyArgs(t.TempDir(), "--set", `eval.beside=["retrieval"]`), "eval.beside: must be some of probe, sentences, sentiment, zeroshot")
	fails(t, exitUsage, tinyArgs(t.TempDir(), "--set", `eval.beside=["probe", "probe"]`), "eval.beside: must name a task once")
}

// TestTextProbe: pairs of texts of two files, for people and as JSON.
func TestTextProbe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(dir, "--max-steps", "1")...)
	rows := "text_a\ttext_b\tlabel\n" + strings.Repeat("a red circle\ta red circle\tsame\na red circle\ta blue square\tother\n", 10)
	train, test := write(t, "train.tsv", rows), write(t, "test.json", `[{"text_a": "a red circle", "text_b": "a blue square", "label": "other"}, {"text_a": "a red circle", "text_b": "a red circle", "label": "same"}]`)
	eval := []string{"eval", "--checkpoint", dir, "--task", "textprobe", "--set", "eval.textprobe.train=" + train, "--set", "eval.textprobe.test=" + test}
	stdout, _ := must(t, exitDone, eval...)
	contains(t, stdout, "20 training text pairs, 2 text pairs, 2 classes", "linear       100.00", "chance        50.00")
	stdout, _ = must(t, exitDone, append(eval, "--json")...)
	if m := parseJSON(t, stdout); m["task"] != "textprobe" || m["pairs"] != 2. || m["train"] != 20. || m["top1"] != 100. || m["knn_top1"] != nil || m["decay"] != .001 {
		t.Errorf("%s", stdout)
	}
	// No split is read, and a class folder is one of its own.
	noData := []string{"--set", "data.kind=captions", "--set", "data.captions.val_files=none.json"}
	must(t, exitDone, append(eval, noData...)...)
	must(t, exitDone, append([]string{"eval", "--checkpoint", dir, "--task", "zeroshot", "--set", "eval.zeroshot.images=" + classFolder(t, "red circle", "blue square")}, noData...)...)
	fails(t, exitUsage, eval[:5], "eval.textprobe.train: must name a file of labelled pairs of texts")
	fails(t, exitUsage, eval[:7], "eval.textprobe.test: must name a file beside that of eval.textprobe.train")
}
