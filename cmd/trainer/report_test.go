package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/ablate"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

func TestReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(dir)...)
	page := func(path string) string {
		t.Helper()
		text := check.Get(os.ReadFile(path))(t)
		return string(text)
	}
	contains(t, page(filepath.Join(dir, runlog.ReportFile)), "PCA", "t-SNE", "own pairs", "learning rate",
		"best evaluation")

	out := filepath.Join(t.TempDir(), "a.html")
	for _, colour := range []string{"shape", "objects", "length", "caption:red", "class"} {
		stdout, _ := must(t, exitDone, "report", dir, "--color", colour, "--points", "8", "--out", out, "--json")
		var r run.Reported
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.N != 8 || r.Color != colour || r.Step != 20 {
			t.Errorf("%s: %v %+v", colour, err, r)
		}
	}
	must(t, exitDone, "report", "--run", dir, "--no-model", "--out", out)
	contains(t, page(out), "without the model", "No model was loaded")

	check.OK(t, os.RemoveAll(filepath.Join(dir, "checkpoints")))
	if _, err := checkpoint.Load(dir); err == nil {
		t.Fatal("there is a checkpoint still")
	}
	must(t, exitDone, "report", dir, "--out", out)
	contains(t, page(out), "no checkpoint so far", "learning rate")
}

func TestReportErrors(t *testing.T) {
	dir := t.TempDir()
	fails(t, exitUsage, []string{"report"}, "needs one RUN")
	fails(t, exitUsage, []string{"report", filepath.Join(dir, "none")}, "is not a folder")
	fails(t, exitUsage, []string{"report", dir}, "is not a run folder")
	matrix := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(matrix, ablate.TableFile), nil, 0o666))
	fails(t, exitUsage, []string{"report", matrix},
		"it is not a run folder: the folder of an ablation has its page already; give RUN/seed-N")
	fails(t, exitUsage, []string{"report", dir, "--points", "1"}, "--points must be between")
	fails(t, exitUsage, []string{"report", dir, "--split", "train"}, "--split must be val or test")
	run := filepath.Join(dir, "run")
	must(t, exitDone, tinyArgs(run)...)
	fails(t, exitFailed, []string{"report", run, "--no-model", "--out", dir},
		"there is something that is not a regular file: choose another file with --out")
	if _, err := os.Stat("/dev/full"); err == nil {
		fails(t, exitFailed, []string{"report", run, "--no-model", "--out", "/dev/full"},
			"there is something that is not a regular file")
	}
	fails(t, exitUsage, []string{"report", run, "--color", "taste"},
		"the attributes of this run are colour, shape, objects, size, place", "caption:WORD")
}
