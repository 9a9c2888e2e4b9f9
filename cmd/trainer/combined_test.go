package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// combinedArgs is a tiny run with all ideas: class tokens of two spheres, a learned metric
// and geodesics, and the geometric term. Its queue of 24 is full after 3 updates, and
// graphs are begun before steps 3, 7 and 11, beside two steps.
func combinedArgs(out string, more ...string) []string {
	args := []string{
		"--set", "model.head.topology=Multi(4,2)", "--set", "model.head.dim=8", "--set", "model.text.positions=32",
		"--set", `objective.itc.scores=[{kind="gssf",weight=1},{kind="geodesic",weight=0.5}]`,
		"--set", "objective.geometric.weight=0.5", "--set", "objective.geometric.neighbours=3", "--set", "objective.geometric.pool=2",
		"--set", "objective.geometric.search=clusters", "--set", "objective.geodesic.lag_steps=2",
	}
	args = geodesicArgs(out, append(args, more...)...)
	for i, a := range args { // the sum takes the place of the single score
		if a == "objective.itc.score=geodesic" {
			args[i] = "objective.itc.score=cosine"
		}
	}
	return args
}

// A run with everything goes on from any of its steps with the same bits: parameters,
// momentum encoder, moments, the queue with what is before the heads, and the graphs.
func TestCombinedRunsResumeExactly(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	must(t, exitDone, combinedArgs(whole, "--quiet", "--set", "train.save_every_steps=1", "--set", "train.keep_last=0", "--max-steps", "12")...)
	want := tensorFiles(t, whole)
	for step := 1; step < 12; step++ {
		parts := filepath.Join(dir, strconv.Itoa(step))
		must(t, exitDone, combinedArgs(parts, "--quiet", "--max-steps", "12", "--resume", filepath.Join(whole, "checkpoints", checkpointName(step)))...)
		for g, b := range tensorFiles(t, parts) {
			if !bytes.Equal(b, want[g]) {
				t.Errorf("from step %d: %s.safetensors differs", step, g)
			}
		}
	}
}

// What a run with the ideas cannot change is refused by key; what needs nothing of the
// checkpoint is not.
func TestCombinedRunsRefuseOtherParts(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, more ...string) string {
		out := filepath.Join(dir, name)
		must(t, exitDone, combinedArgs(out, append(more, "--quiet", "--max-steps", "4")...)...)
		return out
	}
	all, text, plain := run("all"), run("text", "--set", "objective.geometric.modalities=text"), run("plain", "--set", "objective.geometric.weight=0",
		"--set", `objective.itc.scores=[{kind="cosine",weight=1},{kind="geodesic",weight=0.5}]`)
	const no = `objective.itc.scores=[{kind="geodesic",weight=0.5}]`
	for _, x := range []struct{ dir, set, want string }{
		{all, no, `objective.itc.scores: the run in ` + all + `/checkpoints/step-00000004 was started with [{kind = "gssf", weight = 1}, {kind = "geodesic", weight = 0.5}] and a learned metric, which no score reads now (got [{kind = "geodesic", weight = 0.5}]); go on with`},
		{all, "objective.geodesic.temperature=0.2", "objective.geodesic.temperature: the run in "},
		{all, "objective.gssf.form=diag", `objective.gssf.form: the run in `},
		{all, "model.head.topology=Ob(4,2)", `was started with "Multi(4,2)" (got "Ob(4,2)")`},
		{text, "objective.geometric.modalities=both", `objective.geometric.modalities: the run in ` + text + `/checkpoints/step-00000004 was started with "text": its queue lacks the features before the head (got "both")`},
		{plain, "objective.geometric.weight=1", "objective.geometric.weight: the run in "},
		{plain, "objective.geometric.weight=0", "and no learned metric, which a score reads now"},
	} {
		fails(t, exitUsage, combinedArgs(x.dir, "--max-steps", "6", "--set", x.set), x.want)
	}
	must(t, exitDone, combinedArgs(all, "--quiet", "--max-steps", "5", "--set", "objective.gssf.blocks=2")...) // what 0 stands for
	must(t, exitDone, combinedArgs(all, "--quiet", "--max-steps", "6", "--set", "objective.geometric.weight=0")...)
	fails(t, exitUsage, []string{"eval", "--checkpoint", all, "--set", no, "--set", "objective.geometric.search=exact"}, "objective.itc.scores: the checkpoint ", "was made with", "learned metric, which no score reads now")
	other := filepath.Join(dir, "other")
	fails(t, exitUsage, combinedArgs(other, "--max-steps", "1", "--set", "init.checkpoint="+all, "--set", "objective.gssf.form=cosine", "--set", "model.head.topology=sphere"), `model.head.topology: the checkpoint `, `was made with "Multi(4,2)", and image/cls_token has the shape`)
	fails(t, exitUsage, combinedArgs(other, "--max-steps", "1", "--set", "init.checkpoint="+all, "--set", "objective.gssf.form=diag"), "objective.gssf.form: the checkpoint ")
}

// The log has every part, the metric leaves the identity, and evaluation compares by the
// score of training or by another.
func TestCombinedRunIsLoggedAndEvaluated(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, combinedArgs(dir, "--quiet", "--max-steps", "10")...)
	last := rows(t, dir)[9]
	for _, part := range []string{"loss/itc", "loss/itc_in_batch", "loss/itm", "loss/mlm", "loss/geometric_image", "loss/geometric_text"} {
		if v, ok := last.Values[part]; !ok || v < 0 {
			t.Errorf("%s is %v (logged: %t)", part, v, ok)
		}
	}
	if v := last.Values["loss/geometric_image"]; v == 0 {
		t.Error("the geometric term is 0 with a full queue")
	}
	for score, name := range map[string]string{"train": "gssf", "cosine": "cosine", "angle": "angle", "l2": "l2"} {
		stdout, _ := must(t, exitDone, "eval", "--checkpoint", dir, "--json", "--set", "eval.score="+score)
		var e struct {
			Score string             `json:"score"`
			First map[string]float64 `json:"first"`
		}
		check.OK(t, json.Unmarshal([]byte(stdout), &e))
		if e.Score != name || len(e.First) == 0 {
			t.Errorf("eval.score=%s: scored by %q, %v", score, e.Score, e.First)
		}
	}
	page := filepath.Join(dir, "page.html")
	must(t, exitDone, "report", dir, "--quiet", "--out", page)
	text := check.Get(os.ReadFile(page))(t)
	for _, part := range []string{"gssf/weight", "geometric", "Graph over the queue", "t-SNE"} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("the report has no %q", part)
		}
	}
	_, stderr := must(t, exitUsage, "eval", "--checkpoint", dir, "--set", "model.head.topology=Ob(4,2)")
	contains(t, stderr, "model.head.topology")
}

// A dual encoder trains, resumes and evaluates like the other systems.
func TestDualEncoderRuns(t *testing.T) {
	dir := t.TempDir()
	args := func(more ...string) []string {
		return tinyArgs(dir, append([]string{"--set", "model.system=clip", "--set", "model.text.fusion_layers=0", "--set", "model.head.topology=Multi(4,2)",
			"--set", "model.head.dim=8", "--set", "model.text.positions=32", "--set", "momentum.enabled=false", "--set", "queue.size=0", "--set", "objective.distill.alpha=0",
			"--set", "objective.itc.weight=0", "--set", "objective.itc.in_batch_weight=1", "--set", "objective.itm.weight=0", "--set", "objective.mlm.weight=0",
			"--set", "eval.rerank_top=0", "--set", "objective.itc.log_temperature=true", "--set", "objective.itc.temperature_min=0", "--quiet"}, more...)...)
	}
	must(t, exitDone, args("--max-steps", "4")...)
	must(t, exitDone, args("--max-steps", "8")...)
	last := rows(t, dir)[len(rows(t, dir))-1]
	if v := last.Values["temperature"]; !(v >= 0.02 && v <= 0.5) {
		t.Errorf("the temperature is %v", v)
	}
	stdout, _ := must(t, exitDone, "eval", "--checkpoint", dir, "--json")
	contains(t, stdout, `"score": "cosine"`)
}
