package main

import (
	"testing"
)

// TestLastFlagWins: flags that stand for keys and --set are one list, in the order of the
// command line.
func TestLastFlagWins(t *testing.T) {
	rows := []struct {
		args []string
		want map[string]any // by section.key
	}{
		{[]string{"--seed", "1", "--set", "run.seed=2"}, map[string]any{"seed": 2.0}},
		{[]string{"--set", "run.seed=2", "--seed", "1"}, map[string]any{"seed": 1.0}},
		{[]string{"--seed", "1", "--seed", "3"}, map[string]any{"seed": 3.0}},
		{[]string{"--out", "a", "--set", "run.out=b"}, map[string]any{"out": "b"}},
		{[]string{"--set", "run.out=b", "--out", "a"}, map[string]any{"out": "a"}},
		{[]string{"--set", "run.name=a,b", "--set", "run.out=a b"}, map[string]any{"name": "a,b", "out": "a b"}},
	}
	for _, r := range rows {
		stdout, _ := must(t, exitDone, append([]string{"validate", "--json"}, r.args...)...)
		run := parseJSON(t, stdout)["config"].(map[string]any)["run"].(map[string]any)
		for key, want := range r.want {
			if run[key] != want {
				t.Errorf("%q: run.%s is %v, want %v", r.args, key, run[key], want)
			}
		}
	}
	steps := func(more ...string) float64 {
		stdout, _ := must(t, exitDone, tinyArgs(t.TempDir(), append(more, "--dry-run", "--json")...)...)
		return parseJSON(t, stdout)["steps"].(float64)
	}
	if n := steps("--set", "train.max_steps=3", "--max-steps", "4"); n != 4 {
		t.Errorf("--max-steps after --set: %v steps, want 4", n)
	}
	if n := steps("--max-steps", "4", "--set", "train.max_steps=3"); n != 3 {
		t.Errorf("--set after --max-steps: %v steps, want 3", n)
	}
	if n := steps("--set", "train.max_epochs=1", "--max-steps", "4"); n != 4 {
		t.Errorf("--max-steps after another unit: %v steps, want 4", n)
	}
	fails(t, exitUsage, tinyArgs(t.TempDir(), "--max-steps", "4", "--set", "train.max_epochs=1"), "must not be set together")
}

// TestFlagsThatSilenceOthers are refused.
func TestFlagsThatSilenceOthers(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--max-steps", "2", "--quiet")...)
	rows := []struct {
		args []string
		want string
	}{
		{[]string{"train", "--max-steps", "0"}, `invalid argument "0" for "--max-steps" flag: must be a whole number > 0`},
		{[]string{"train", "--max-steps", "1e3"}, "must be a whole number > 0"},
		{[]string{"train", "--seed", "-1"}, `invalid argument "-1" for "--seed" flag: must be a whole number >= 0`},
		{[]string{"train", "--out", ""}, `invalid argument "" for "--out" flag: must name a folder`},
		{[]string{"validate", "--print", "--json"}, "--print and --json do not go together: leave one out"},
		{[]string{"inspect", dir, "--verify", "--print-config"}, "--verify and --print-config do not go together"},
		{[]string{"inspect", dir, "--verify", "--group", "queue"}, "--verify and --group do not go together"},
		{[]string{"inspect", dir, "--print-config", "--json"}, "--print-config and --json do not go together"},
		{[]string{"report", dir, "--no-model", "--color", "length"}, "--no-model and --color do not go together"},
		{[]string{"report", dir, "--no-model", "--set", "data.root=x"}, "--no-model and --set do not go together"},
		{[]string{"report", dir, "--no-model", "--checkpoint", dir}, "--no-model and --checkpoint do not go together"},
		{[]string{"search", "x.npy", "--row", "5", "--checkpoint", dir}, "--row and --checkpoint do not go together"},
		{[]string{"search", "x.npy", "--vector", "1,2", "--set", "data.root=x"}, "--vector and --set do not go together"},
		{[]string{"serve", dir, "--no-model", "--checkpoint", dir}, "--no-model and --checkpoint do not go together"},
		{[]string{"import", "--from", dir, "--settings", "--set", "data.root=x"}, "--settings and --set do not go together"},
		{[]string{"import", "--from", dir, "--settings", "--out", dir}, "--settings and --out do not go together"},
		{[]string{"eval", "--checkpoint", dir, "--task", "sentences", "--split", "test"}, "the task sentences reads files of its own and no split of the data: leave out --split"},
		{[]string{"finetune", "--checkpoint", dir, "--set", "init.checkpoint=other"}, `init.checkpoint: is what is fine-tuned, "` + dir + `" (got "other"); leave it out`},
		{[]string{"data", "preview", "--columns", "0"}, "--images and --columns must be > 0 (got 24 and 0)"},
		{[]string{"data", "check", "--examples", "-1"}, "--examples must be > 0 (got -1)"},
	}
	for _, r := range rows {
		fails(t, exitUsage, r.args, r.want)
	}
}
