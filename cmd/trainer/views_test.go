package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// viewsArgs is the command line of a tiny run of images alone.
func viewsArgs(system, out string, more ...string) []string {
	momentum := "momentum.enabled=true"
	if system == "swav" {
		momentum = "momentum.enabled=false"
	}
	args := tinyArgs(out)
	for _, s := range []string{
		"model.system=" + system, momentum, "data.views=2", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0",
		"objective.distill.alpha=0", "objective.distill.ramp_steps=0", "objective.distill.ramp_epochs=0", "objective.itc.in_batch_weight=0",
		"objective.itc.positives=pair", "objective.swav.prototypes=10", "queue.start_steps=1", "eval.probe_samples=40",
		"objective.geodesic.layers=[6]", "objective.geodesic.neighbours=2", "objective.geodesic.period_steps=4",
	} {
		args = append(args, "--set", s)
	}
	return append(args, more...)
}

// TestViewsFromTheCommandLine: train with a probe at the end, go on, inspect, eval, dry
// run and bench of systems of images alone, with either score.
func TestViewsFromTheCommandLine(t *testing.T) {
	for _, system := range []string{"moco", "swav"} {
		for _, score := range []string{"cosine", "geodesic"} {
			dir := filepath.Join(t.TempDir(), "run")
			set := []string{"--set", "objective.itc.score=" + score}
			stdout, _ := must(t, 0, viewsArgs(system, dir, append(set, "--max-steps", "10")...)...)
			contains(t, stdout, "probe on val: 40 training images, 12 images, 64 classes", "linear", "k-NN")
			stdout, stderr := must(t, 0, viewsArgs(system, dir, append(set, "--max-steps", "14")...)...)
			contains(t, stderr, "going on from step 10", "step 14/14")
			last := rows(t, dir)[len(rows(t, dir))-1]
			if _, ok := last.Values["eval/probe/top1"]; !ok || last.Step != 14 {
				t.Errorf("%s %s: last row %+v", system, score, last)
			}
			if _, ok := last.Values["graph/image/centres"]; ok != (score == "geodesic") {
				t.Errorf("%s %s: graph figures: %t", system, score, ok)
			}
			contains(t, stdout, "probe on val")
			stdout, _ = must(t, 0, "inspect", dir)
			contains(t, stdout, system, "image_proj/fc1/weight")
			stdout, _ = must(t, 0, "eval", "--checkpoint", dir, "--split", "test", "--json")
			var got map[string]any
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || got["task"] != "probe" || got["images"] != 10. {
				t.Errorf("%s %s: %v %v", system, score, err, got)
			}
			fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--task", "retrieval"}, "has no text tower")
			stdout, _ = must(t, 0, viewsArgs(system, filepath.Join(t.TempDir(), "dry"), append(set, "--dry-run")...)...)
			contains(t, stdout, "MB queues")
			if got := strings.Contains(stdout, "queues with graphs"); got != (score == "geodesic") {
				t.Errorf("%s %s: graphs counted: %t", system, score, got)
			}
		}
	}
}

func TestViewsBench(t *testing.T) {
	quickPeak(t)
	for _, system := range []string{"moco", "swav"} {
		args := append([]string{"bench", "--config", tiny, "--steps", "2", "--warmup", "1"}, viewsArgs(system, "unused", "--set", "objective.itc.score=geodesic")[5:]...)
		stdout, _ := must(t, 0, args...)
		contains(t, stdout, "queue", "backward")
	}
}
