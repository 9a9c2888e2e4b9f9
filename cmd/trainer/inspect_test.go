package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// saveRun writes a run folder with one checkpoint of three parameters.
func saveRun(t *testing.T) string {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run [1]")
	store := check.Get(checkpoint.NewStore(filepath.Join(run, "checkpoints"), checkpoint.Retention{}))(t)
	snapshot := check.Get(checkpoint.Take([]state.Part{
		state.Values{Name: "model", Memory: []state.Tensor{
			{Name: "text/w", Shape: []int{40, 30}, Data: make([]float32, 1200)},
			{Name: "image/w", Shape: []int{2, 3}, Data: make([]float32, 6)},
			{Name: "temperature", Data: make([]float32, 1)},
		}},
		state.Values{Name: "queue", Memory: []state.Tensor{{Name: "ids", Shape: []int{4}, Data: make([]int64, 4)}}},
	}))(t)
	snapshot.Metric = &checkpoint.Metric{Name: "eval/retrieval/first/r_mean", Value: 51.25}
	check.OK(t, store.Save(100, snapshot))
	check.OK(t, os.WriteFile(filepath.Join(run, "config.toml"), []byte("[run]\nname = \"quick\"\nseed = 7\n"), 0o644))
	return run
}

func TestInspect(t *testing.T) {
	code, stdout, stderr := trainer(t, "inspect", saveRun(t))
	if code != exitDone || stderr != "" {
		t.Fatalf("code %d, stderr %s", code, stderr)
	}
	fields := map[string]bool{}
	for line := range strings.SplitSeq(stdout, "\n") {
		fields[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, want := range []string{"step 100", "metric 51.25 eval/retrieval/first/r_mean", "run.name quick", "run.seed 7",
		"model 3 1,207 0.0", "queue 1 4 0.0",
		"image/w 2 x 3 6", "text/w 40 x 30 1,200", "temperature - 1",
		"image 6", "text 1,200", "total 1,207"} {
		if !fields[want] {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

// TestInspectData: the record of the data is shown, and one that is damaged is told.
func TestInspectData(t *testing.T) {
	dir := saveRun(t)
	write := func(text string) {
		t.Helper()
		check.OK(t, os.WriteFile(filepath.Join(dir, "data.json"), []byte(text), 0o644))
	}
	const sum, other = "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"
	write(`{"rule": 1, "splits": {"train": {"samples": 6000, "list": "` + sum + `", "contents": {"files": 6000, "bytes": 5500000, "sum": "` + other + `"}}, "val": {"samples": 50, "list": "` + other + `", "contents": {"files": 0, "bytes": 0}}}}`)
	code, stdout, stderr := trainer(t, "inspect", dir)
	all := strings.Join(strings.Fields(stdout), " ")
	for _, want := range []string{"data samples sum of the list files MB sum of the files", "train 6,000 " + sum + " 6,000 5.5 " + other, "val 50 " + other + " - - not read yet"} {
		if code != exitDone || stderr != "" || !strings.Contains(all, want) {
			t.Errorf("code %d, %s, %q is missing in\n%s", code, stderr, want, stdout)
		}
	}
	write(`{"rule": 1, "splits": {"train": null}}`)
	if code, _, stderr := trainer(t, "inspect", dir); code != exitDone || !strings.Contains(stderr, "data.json is damaged") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestInspectJSON(t *testing.T) {
	run := saveRun(t)
	code, stdout, stderr := trainer(t, "inspect", "--checkpoint", filepath.Join(run, "checkpoints", "step-00000100"), "--group", "queue", "--json")
	m := parseJSON(t, stdout)
	tensor := m["tensors"].([]any)[0].(map[string]any)
	if code != exitDone || stderr != "" || m["step"] != 100.0 || m["numbers"] != 4.0 || m["metric"] != 51.25 || m["metric_name"] != "eval/retrieval/first/r_mean" || tensor["name"] != "ids" || tensor["type"] != "I64" ||
		m["config"].(map[string]any)["run"].(map[string]any)["name"] != "quick" {
		t.Errorf("code %d, stderr %q, stdout %s", code, stderr, stdout)
	}
}

func TestInspectPrintConfig(t *testing.T) {
	code, stdout, _ := trainer(t, "inspect", saveRun(t), "--print-config")
	if code != exitDone || stdout != "[run]\nname = \"quick\"\nseed = 7\n" {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
}

func TestInspectFailures(t *testing.T) {
	run := saveRun(t)
	code, stdout, stderr := trainer(t, "inspect", run, "--group", "momentum")
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, `has no group "momentum": it has model, queue`) {
		t.Errorf("unknown group: code %d, stderr %q", code, stderr)
	}
	file := filepath.Join(run, "checkpoints", "step-00000100", "model.safetensors")
	check.OK(t, os.Truncate(file, 10))
	code, stdout, stderr = trainer(t, "inspect", filepath.Dir(file))
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "model.safetensors") {
		t.Errorf("truncated file: code %d, stderr %q", code, stderr)
	}
}

// inspect --verify compares the data of a run with what the run recorded: the same, moved, changed or not there.
func TestInspectVerifiesData(t *testing.T) {
	dir, flags := photoData(t)
	out := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(out, append(flags, "--quiet", "--max-steps", "1", "--set", "train.batch_size=4")...)...)
	state := func(code int, args ...string) map[string]any {
		t.Helper()
		stdout, _ := must(t, code, append([]string{"inspect", out, "--verify", "--json"}, args...)...)
		found, _ := parseJSON(t, stdout)["data"].(map[string]any)
		return found
	}
	if got := state(exitDone); got["state"] != "same" {
		t.Errorf("%v", got)
	}
	back := swap(t, filepath.Join(dir, "val/003.png"))
	if got := state(exitFailed); got["state"] != "changed" || !strings.Contains(fmt.Sprint(got["why"]), "val/003.png") {
		t.Errorf("%v", got)
	}
	fails(t, exitFailed, []string{"inspect", out, "--verify"}, "not those that the run was trained on: val: val/003.png")
	back()
	moved := filepath.Join(t.TempDir(), "moved")
	check.OK(t, os.Rename(dir, moved))
	if got := state(exitDone); got["state"] != "not compared" || !strings.Contains(fmt.Sprint(got["why"]), "--set data.root=FOLDER") {
		t.Errorf("%v", got)
	}
	if got := state(exitDone, "--set", "data.root="+moved); got["state"] != "same" {
		t.Errorf("%v", got)
	}
	fails(t, exitUsage, []string{"inspect", out, "--set", "data.root=" + moved}, "--verify")
}
